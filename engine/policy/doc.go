// Package policy reads policy files: the agent's own config.json, Nod's
// policy.jsonc and the front matter of agent files, in all their scopes.
//
// It reads through Files, so it touches no disk by itself, and it never ends
// in an empty policy without saying so: a file that cannot be read or does not
// validate becomes a broken layer, which fails closed in engine.Compile.
package policy
