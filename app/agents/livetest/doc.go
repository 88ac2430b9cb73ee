// Package livetest drives real agents against Nod: each is installed from npm,
// talks to a model that plays a script, and calls the hook that `nod hook
// install` has put into its settings. What is seen makes the table of
// docs/agents.md.
//
// The tests run where NOD_E2E=1 is set, after
//
//	.ci/clients
//
// and drive the slow agents too where NOD_AGENTS is set, after
//
//	.ci/clients install opencode opencode-plugin pi-subagents
package livetest
