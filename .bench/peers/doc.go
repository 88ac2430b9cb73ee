// Package peers puts one set of rules and questions to Nod and to the policy
// engines that it is compared with: cedar-go, casbin, OPA and the engine of
// pi-permission-system, which runs under node.
//
// TestSameDecisions first makes sure that they all say the same, with the same
// rule behind it. Each peer gets the rules in the form that it is fastest with.
// Only what follows the ordered list of rules is compared, not reading, which
// the other engines leave to their callers, save pi's: see BenchmarkBash.
package peers
