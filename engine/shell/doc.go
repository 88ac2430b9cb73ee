// Package shell reads a command line as bash would and says what a policy must
// know of it: every simple command that can run (Unit), and every word that can
// name a file (Operand). It reads once; all three bash gates are fed by the same
// reading. It touches no disk and runs nothing.
//
// What it cannot read it marks: a Program whose Broken is set, and a Unit with a
// Floor, must at least be asked about.
package shell
