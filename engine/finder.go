package engine

import (
	"bytes"
	"cmp"
	"math/bits"
	"slices"
	"sync"
)

// finder finds entries by the literal texts in the middle of their patterns, as
// the `x` of `*x*`: one pass over a value tells which of all those texts occur
// in it, by the automaton of Aho and Corasick. An entry is held against the value
// only if all of its texts do.
//
// Nodes are numbered breadth first, so that those below a node have numbers in
// a row. Node 0 is the start.
type finder struct {
	label []byte     // by node: the byte that leads to it
	nodes []state    // by node, and one more
	root  [256]int32 // by byte: the node below the start

	floats []float // in the order of their entries
	byText [][]int32
	pool   sync.Pool // of *found
}

// state is a node.
type state struct {
	first int32 // the first node below it; the next node's ends them
	fail  int32 // the longest text that ends it and is a node too
	out   int32 // it or the nearest by fail at which a text ends; 0: none
	text  int32 // the number of the text that ends at it, or -1
}

// float is an entry that a finder finds.
type float struct {
	entry int32
	sure  bool    // its text occurring is all that it takes
	needs []int32 // the texts that must occur
}

// found is the state of one pass.
type found struct {
	pass uint32
	seen []uint32 // by text: the last pass that met it
	bits []uint64 // by float: it may match
}

// newFinder returns the finder of the given entries, which must be in
// ascending order.
func newFinder(entries []entry, which []int32) *finder {
	f := &finder{floats: make([]float, 0, len(which))}
	number := map[string]int32{}
	var texts []string
	for _, i := range which {
		e := &entries[i]
		fl := float{entry: i}
		e.pat.Literals(func(s string) {
			n, ok := number[s]
			if !ok {
				n = int32(len(texts))
				number[s], texts = n, append(texts, s)
			}
			fl.needs = append(fl.needs, n)
		})
		if _, ok := e.pat.Contains(); ok && e.outside == "" {
			fl.sure = true
		}
		f.floats = append(f.floats, fl)
	}
	// Each is filed by the text that the fewest share, for that one tells most.
	shared := make([]int32, len(texts))
	for i := range f.floats {
		for _, n := range f.floats[i].needs {
			shared[n]++
		}
	}
	f.byText = make([][]int32, len(texts))
	for i := range f.floats {
		rarest := slices.MinFunc(f.floats[i].needs, func(a, b int32) int {
			return cmp.Or(cmp.Compare(shared[a], shared[b]), cmp.Compare(len(texts[b]), len(texts[a])))
		})
		f.byText[rarest] = append(f.byText[rarest], int32(i))
	}
	f.build(texts)
	f.pool.New = func() any {
		return &found{seen: make([]uint32, len(texts)), bits: make([]uint64, (len(f.floats)+63)/64)}
	}
	return f
}

// build makes the automaton of texts, which are all different and not empty.
func (f *finder) build(texts []string) {
	order := make([]int32, len(texts)) // the texts by the alphabet
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(texts[a], texts[b]) })
	type span struct{ from, to, depth int } // the texts that begin as a node does
	spans := []span{{0, len(order), 0}}
	f.label, f.nodes = []byte{0}, []state{{text: -1}}
	for at := 0; at < len(spans); at++ {
		f.nodes[at].first = int32(len(spans))
		s := spans[at]
		if s.from < s.to && len(texts[order[s.from]]) == s.depth {
			s.from++ // it ends here
		}
		for s.from < s.to {
			b := texts[order[s.from]][s.depth]
			n := 1
			for s.from+n < s.to && texts[order[s.from+n]][s.depth] == b {
				n++
			}
			kid := int32(len(spans))
			spans = append(spans, span{s.from, s.from + n, s.depth + 1})
			fail := int32(0)
			if at == 0 {
				f.root[b] = kid
			} else {
				fail = f.step(f.nodes[at].fail, b)
			}
			node := state{fail: fail, out: f.nodes[fail].out, text: -1}
			if t := order[s.from]; len(texts[t]) == s.depth+1 {
				node.out, node.text = kid, t
			}
			f.label, f.nodes = append(f.label, b), append(f.nodes, node)
			s.from += n
		}
	}
	f.nodes = append(f.nodes, state{first: int32(len(spans))})
}

// step is the node that b leads to from n.
func (f *finder) step(n int32, b byte) int32 {
	for n != 0 {
		from, to := f.nodes[n].first, f.nodes[n+1].first
		if to-from < 8 {
			for ; from < to; from++ {
				if f.label[from] == b {
					return from
				}
			}
		} else if i := bytes.IndexByte(f.label[from:to], b); i >= 0 {
			return from + int32(i)
		}
		n = f.nodes[n].fail
	}
	return f.root[b]
}

// find returns the last entry after best that v matches, or best.
func (f *finder) find(x *index, v string, sel selection, best int32, w *Work, only *grantFilter) int32 {
	if f.floats[len(f.floats)-1].entry <= best || !w.spend(len(v)*finderWork) {
		return best
	}
	m := f.pool.Get().(*found)
	defer f.pool.Put(m)
	if m.pass++; m.pass == 0 {
		clear(m.seen)
		m.pass = 1
	}
	top := -1
	n := int32(0)
	for i := 0; i < len(v); i++ {
		if n != 0 {
			n = f.step(n, v[i])
		} else if n = f.root[v[i]]; n == 0 {
			continue // most bytes begin no text
		}
		// What a text that is known already ends with is known too.
		for at := f.nodes[n].out; at != 0; at = f.nodes[f.nodes[at].fail].out {
			t := f.nodes[at].text
			if m.seen[t] == m.pass {
				break
			}
			m.seen[t] = m.pass
			for _, k := range f.byText[t] {
				m.bits[k>>6] |= 1 << (k & 63)
				top = max(top, int(k>>6))
			}
			w.spend(len(f.byText[t]))
		}
	}
	for ; top >= 0; top-- {
		for set := m.bits[top]; set != 0 && !w.out(); {
			b := 63 - bits.LeadingZeros64(set)
			set &^= 1 << b
			fl := &f.floats[top<<6|b]
			if fl.entry <= best {
				break
			}
			if !x.counts(fl.entry, sel, only) || !m.all(fl.needs) {
				continue
			}
			w.spend(candidateWork)
			if fl.sure || x.entries[fl.entry].matchWithin(v, w) {
				best = fl.entry
			}
		}
		m.bits[top] = 0
	}
	return best
}

// all reports whether every one of texts was met.
func (m *found) all(texts []int32) bool {
	for _, t := range texts {
		if m.seen[t] != m.pass {
			return false
		}
	}
	return true
}
