package assets

import _ "embed"

//go:embed policy.schema.json
var policySchema string

// PolicySchema is the JSON Schema of policy files (draft 2020-12). It is
// generated from the Go types of the policy room, by the test there.
func PolicySchema() []byte { return []byte(policySchema) }
