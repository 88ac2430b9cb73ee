package shell

// The floors: why a command that a rule allows must still be asked about. The
// names stand where a pattern would.
const (
	FloorIndirection = "<indirection-bash-wrapper>" // it runs another command
	FloorOpaque      = "<opaque-bash-wrapper>"      // it runs a text as a program
	FloorComputed    = "<computed-bash-command>"    // its name is known only when it runs
	FloorUnparseable = "<unparseable-bash-command>" // it could not be read
)

// The contexts that a Unit can be found in.
const (
	ContextCommandSubstitution = "command_substitution"
	ContextProcessSubstitution = "process_substitution"
	ContextSubshell            = "subshell"
)

// Floor is one reason to ask about a Unit.
type Floor struct {
	Pattern string // one of the Floor constants
	Why     string // for a person, such as "sudo runs another command"
}

// Unit is one simple command that can run.
type Unit struct {
	// Text is the command as typed, from its name on, without leading
	// assignments and without redirects.
	Text string
	// Spellings are the forms that every rule may match: Text, its words after
	// quote removal joined by one space, and both with other ways to write the
	// home directory. Text is the first.
	Spellings []string
	// Strict are forms for deny and ask rules only: the name without its
	// directory, git without its global options, the results of brace expansion
	// and of variables that the program itself sets.
	Strict []string
	// Whole are the texts of the compounds around it, for deny and ask rules
	// only, the innermost first.
	Whole []string
	// Context is where it was found: one of the Context constants or empty.
	Context string
	// Floors are the reasons to ask, whatever a rule allows.
	Floors []Floor
	// Executes is the innermost visible command that a wrapper runs, or empty.
	Executes string
	// Wrapper is the index of the unit that runs this one, or -1. Such a unit
	// counts for deny and ask; its wrapper is judged on its own.
	Wrapper int
	// Words are the words after quote removal, the name first.
	Words []string
	// Guess marks a unit that may not be one: its wrapper has an option that is
	// not known, so where the inner command begins is not known either.
	Guess bool
}

// Direction is what a command does to a file it names.
type Direction uint8

// The directions. Unknown is to be judged as both.
const (
	Unknown Direction = iota
	Read
	Write
)

// Shape says why a word may be a path, as a set of bits.
type Shape uint8

// The shapes. A word with neither ShapePath nor Certain is a path only if such a
// file exists.
const (
	ShapeBoundary Shape = 1 << iota // looks like a place outside: `/x`, `~/x`, `../x`, `C:/x`
	ShapePath                       // looks like a path: also `.x` and `a/b`
)

// Operand is one word that may name a file.
type Operand struct {
	Text  string // after quote removal, with what is known put in
	Typed string // as a person would say it: after quote removal, unexpanded
	Glob  string // if it has active wildcards: the pattern, quoted characters escaped
	Shape Shape
	Dir   Direction
	// Certain marks a redirect target and an operand of a command that creates
	// what it names: a path even if nothing like it exists.
	Certain  bool
	Redirect bool
	// Unplaced marks a word that cannot be placed and must be taken as outside:
	// `~user/x`, `~-/x`, a redirect into a variable.
	Unplaced bool
	// Dynamic marks a word with an expansion that is not known: what it is
	// cannot be looked up, so it counts by what is literal in it.
	Dynamic bool
	// Recursive says that the command goes into a directory so named.
	Recursive bool
	// GateOnly limits a word to the path gate: git's `REV:path`.
	GateOnly bool
	// Bases are the directories that the word may be relative to, absolute but
	// not normalised (a `..` in them follows links). Nil is the directory the
	// program starts in.
	Bases []string
	// Lost says that the directory is not known, or not the only one: the word
	// then counts as typed as well.
	Lost bool
	// Unit is the index of the unit it belongs to, -1 for none.
	Unit   int
	offset int
}

// Program is a command line, read.
type Program struct {
	Text     string
	Units    []Unit
	Operands []Operand
	// Blank says that nothing runs: the text is empty or only comments.
	Blank bool
	// Broken is why the text, or part of it, could not be read; empty if all of
	// it was. Units and Operands then hold what was read before.
	Broken string
}

// Env is what the reading depends on.
type Env struct {
	Home    string // for `~` and `$HOME`; empty: they are not known
	Cwd     string // the directory the program starts in, absolute
	Windows bool   // backslashes separate, too
}

// Limits, beyond which a program counts as not readable.
const (
	maxText     = 1 << 20 // bytes
	maxLines    = 1 << 17
	maxUnits    = 4_096
	maxOperands = 20_000
	maxDepth    = 400     // nested statements and payloads
	maxLayers   = 64      // wrappers around one command
	maxSpelled  = 8 << 20 // bytes of texts to be matched
	maxResults  = 64      // of one brace expansion
)
