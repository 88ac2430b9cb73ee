package engine

import (
	"cmp"
	"slices"
)

// selection narrows which entries a search may find.
type selection uint8

const (
	noAllow selection = 1 << iota // deny and ask only
	noBare                        // no pattern of nothing but stars
)

// index is an ordered list of entries that can be searched from its end
// without visiting those that cannot match. Entries are filed by the literal
// text that their values start or end with, whichever is longer. Where too many
// share that, they are found by the texts in their middle.
type index struct {
	entries []entry
	heads   node
	tails   node
	middles *finder // nil: none
}

// crowd is how many entries a node may list. More are found sooner by a finder,
// which costs a value more at first.
const crowd = 32

// node is a place in a radix tree.
type node struct {
	label  string  // the text from the parent to here
	list   []int32 // entries filed here, last first
	max    int32   // the last entry at or below here, -1 if none
	firsts string  // the first byte of each child's label
	kids   []*node
}

func newIndex(entries []entry) index { return indexOf(entries, crowd) }

// indexOf is newIndex for another crowd.
func indexOf(entries []entry, crowd int) index {
	x := index{entries: entries, heads: node{max: -1}, tails: node{max: -1}}
	for i := range entries {
		e := &entries[i]
		x.file(i, e.pat.Head(), e.pat.Tail())
		if e.alt != nil {
			x.file(i, e.alt.Head(), e.alt.Tail())
		}
	}
	var float []int32
	for _, n := range [...]*node{&x.heads, &x.tails} {
		float = n.order(entries, crowd, float)
	}
	if len(float) > 0 {
		slices.Sort(float)
		x.middles = newFinder(entries, float)
	}
	return x
}

func (x *index) file(i int, head, tail string) {
	if len(tail) > len(head) {
		x.tails.insert(reverse(tail), int32(i))
		return
	}
	x.heads.insert(head, int32(i))
}

func (n *node) insert(key string, i int32) {
	for {
		if i > n.max {
			n.max = i
		}
		if key == "" {
			n.list = append(n.list, i)
			return
		}
		k := n.child(key[0])
		if k < 0 {
			n.firsts += key[:1]
			n.kids = append(n.kids, &node{label: key, list: []int32{i}, max: i})
			return
		}
		kid := n.kids[k]
		same := 0
		for same < len(kid.label) && same < len(key) && kid.label[same] == key[same] {
			same++
		}
		if same < len(kid.label) {
			n.kids[k] = &node{label: kid.label[:same], max: kid.max, firsts: kid.label[same : same+1], kids: []*node{kid}}
			kid.label = kid.label[same:]
			kid = n.kids[k]
		}
		n, key = kid, key[same:]
	}
}

func (n *node) child(b byte) int {
	for i := 0; i < len(n.firsts); i++ {
		if n.firsts[i] == b {
			return i
		}
	}
	return -1
}

// order puts every list last first. Of a crowd it takes out what a finder can
// find, and adds it to float.
func (n *node) order(entries []entry, crowd int, float []int32) []int32 {
	if len(n.list) > crowd {
		kept := n.list[:0]
		for _, i := range n.list {
			if entries[i].floats() {
				float = append(float, i)
			} else {
				kept = append(kept, i)
			}
		}
		n.list = kept
	}
	slices.SortFunc(n.list, func(a, b int32) int { return cmp.Compare(b, a) })
	for _, k := range n.kids {
		float = k.order(entries, crowd, float)
	}
	return float
}

// floats reports whether e can be found by more of its text than its head.
func (e *entry) floats() bool {
	if e.alt != nil {
		return false
	}
	n := 0
	e.pat.Literals(func(string) { n++ })
	return n > 1 || n == 1 && e.pat.Head() == ""
}

// find returns the last entry after `after` that matches v, or `after`. Where w
// does not last, it returns the last one that it has found, and what it costs
// nothing to find is found still.
func (x *index) find(v string, sel selection, after int, w *Work, only *grantFilter) int {
	best := int32(after)
	n, at := &x.heads, 0
	for n.max > best {
		best = x.scan(n, v, sel, best, w, only)
		if at == len(v) {
			break
		}
		k := n.child(v[at])
		if k < 0 {
			break
		}
		n = n.kids[k]
		if len(v)-at < len(n.label) || v[at:at+len(n.label)] != n.label {
			break
		}
		at += len(n.label)
	}
	n, at = &x.tails, len(v)
	for n.max > best {
		best = x.scan(n, v, sel, best, w, only)
		if at == 0 {
			break
		}
		k := n.child(v[at-1])
		if k < 0 {
			break
		}
		n = n.kids[k]
		if at < len(n.label) || !reversed(v[at-len(n.label):at], n.label) {
			break
		}
		at -= len(n.label)
	}
	if x.middles != nil && !w.out() {
		best = x.middles.find(x, v, sel, best, w, only)
	}
	return int(best)
}

// scan returns the last entry filed at n that is after best and matches v, or
// best.
func (x *index) scan(n *node, v string, sel selection, best int32, w *Work, only *grantFilter) int32 {
	for _, i := range n.list {
		if i <= best {
			break
		}
		e := &x.entries[i]
		if !w.spend(candidateWork) && e.pat.Searches() {
			continue
		}
		if x.counts(i, sel, only) && e.matchWithin(v, w) {
			return i
		}
	}
	return best
}

// counts reports whether a search may find entry i.
func (x *index) counts(i int32, sel selection, only *grantFilter) bool {
	e := &x.entries[i]
	if sel&noAllow != 0 && e.rule.Action == Allow || sel&noBare != 0 && e.bare {
		return false
	}
	return only == nil || only.accepts(i)
}

// reverse returns the bytes of s from last to first.
func reverse(s string) string {
	b := make([]byte, len(s))
	for i := range len(s) {
		b[len(s)-1-i] = s[i]
	}
	return string(b)
}

// reversed reports whether a is b read from its end.
func reversed(a, b string) bool {
	for i := range len(a) {
		if a[i] != b[len(b)-1-i] {
			return false
		}
	}
	return len(a) == len(b)
}
