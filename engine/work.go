package engine

// Work is what matching may still cost for one decision. Its unit is one byte
// of a value that is looked at, which takes a slow core a few nanoseconds. The
// values of a decision draw on one Work, so that a command of many parts costs
// no more than a long one; it is not safe for concurrent use.
//
// Where it does not last, the value in question asks (Match.Limited): a rule
// that was not looked at might deny it. The values behind it are judged all the
// same, for each may use a small share of its own.
type Work struct {
	left int
	own  int // what each value has at least
}

const (
	// maxWork is what a decision may cost in all. On a slow core that is below a
	// second.
	maxWork = 1 << 28
	// ownWork is what a single value may cost where all is used up: thousands of
	// candidates for an ordinary command.
	ownWork = 1 << 12

	candidateWork = 4 // of one rule that is no more than looked at
	finderWork    = 8 // of a byte that finder.find reads
)

// PatternLimit is the name that stands for a pattern where holding a value
// against the rules would take too long, so that it asks.
const PatternLimit = "<too-much-to-match>"

// NewWork returns the Work of one decision.
func NewWork() *Work { return &Work{left: maxWork, own: ownWork} }

// begin starts on a further value.
func (w *Work) begin() { w.left = max(w.left, w.own) }

// spend takes n and reports whether there was so much.
func (w *Work) spend(n int) bool {
	w.left = max(w.left-n, -1)
	return w.left >= 0
}

// out reports whether the last value could not be held against every rule.
func (w *Work) out() bool { return w.left < 0 }
