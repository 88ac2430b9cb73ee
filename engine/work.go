package engine

// Work is what matching may still cost for one decision. Its unit is one byte
// of a value that is looked at, which takes a slow core a few nanoseconds. The
// values of a decision draw on one Work, so that a command of many parts costs
// no more than a long one; it is not safe for concurrent use.
//
// Where it does not last, the value in question asks (Match.Limited): a rule
// that was not looked at might deny it. The values behind it are judged all the
// same, for each may use a share of its own.
type Work struct {
	left  int
	own   int // what each value has at least
	spare int // of which a long value takes what its share is more than that
}

const (
	// maxWork is what a decision may cost, and spareWork what it may cost beyond
	// that. On a slow core both are below a second.
	maxWork   = 1 << 28
	spareWork = 1 << 28
	// ownWork is what a single value may cost where all is used up: thousands of
	// candidates for an ordinary command.
	ownWork = 1 << 12
	// byteWork is what it may cost beside for each of its bytes: more than dozens
	// of rules that search it, so that of an ordinary policy each rule is found,
	// no matter what a command is padded with. spareWork is enough for the 8 MiB
	// that the texts of a command may have.
	byteWork = 32

	candidateWork = 4 // of one rule that is no more than looked at
	finderWork    = 8 // of a byte that finder.find reads
)

// PatternLimit is the name that stands for a pattern where holding a value
// against the rules would take too long, so that it asks.
const PatternLimit = "<too-much-to-match>"

// NewWork returns the Work of one decision.
func NewWork() *Work { return &Work{left: maxWork, own: ownWork, spare: spareWork} }

// begin starts on a further value, with the share of n bytes of it.
func (w *Work) begin(n int) {
	w.left = max(w.left, w.own)
	if more := min(n*byteWork-w.left, w.spare); more > 0 {
		w.left += more
		w.spare -= more
	}
}

// spend takes n and reports whether there was so much.
func (w *Work) spend(n int) bool {
	w.left = max(w.left-n, -1)
	return w.left >= 0
}

// out reports whether the last value could not be held against every rule.
func (w *Work) out() bool { return w.left < 0 }
