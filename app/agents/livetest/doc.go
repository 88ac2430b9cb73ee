// Package livetest drives real agents against Nod: each is installed from npm,
// talks to a model that plays a script, and calls the hook that `nod hook
// install` has put into its settings. What is seen makes the tables of
// docs/agents.md.
//
// The tests run where NOD_AGENTS is set, after
//
//	.ci/clients install node claude codex gemini copilot opencode opencode-plugin
package livetest
