package peers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	cedar "github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"

	nod "github.com/nod-agents/nod/engine"
	"github.com/nod-agents/nod/engine/policy"
)

// nodEngine is a compiled ruleset, read from a policy file.
type nodEngine struct{ rules *nod.Ruleset }

func newNod(tb testing.TB, list []rule) *nodEngine {
	tb.Helper()
	layer, _, warnings, err := policy.Parse("policy.jsonc", permission(tb, list), policy.Nod, "/home/dev")
	if err != nil || len(warnings) > 0 {
		tb.Fatal(err, warnings)
	}
	return &nodEngine{nod.Compile([]nod.Layer{layer}, nod.Options{Home: "/home/dev", Cwd: "/home/dev/proj", Now: time.Unix(1e9, 0)})}
}

func (e *nodEngine) decide(q question) (answer, error) {
	m := e.rules.Resolve(&nod.Query{Surface: q.Surface, Values: []string{q.Value}})
	if !m.Explicit {
		return answer{m.Action.String(), ""}, nil
	}
	return answer{m.Action.String(), m.Pattern}, nil
}

// cedarEngine has a permit for each rule. Cedar's policies have no order and
// no third effect, so its caller takes the last of the policies that it names as
// reasons, and that rule's action.
type cedarEngine struct {
	set   *cedar.PolicySet
	rules []rule
}

func newCedar(tb testing.TB, list []rule) *cedarEngine {
	tb.Helper()
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintf(&text, "permit (principal, action == Action::%q, resource) when { context.value like %q };\n", r.Surface, r.Pattern)
	}
	set, err := cedar.NewPolicySetFromBytes("policy.cedar", []byte(text.String()))
	if err != nil {
		tb.Fatal(err)
	}
	return &cedarEngine{set, list}
}

func (e *cedarEngine) request(q question) cedar.Request {
	return cedar.Request{
		Principal: cedar.NewEntityUID("Agent", "scout"),
		Action:    cedar.NewEntityUID("Action", cedar.String(q.Surface)),
		Resource:  cedar.NewEntityUID("Tool", "it"),
		Context:   cedar.NewRecord(cedar.RecordMap{"value": cedar.String(q.Value)}),
	}
}

func (e *cedarEngine) authorize(r cedar.Request) (answer, error) {
	_, diagnostic := cedar.Authorize(e.set, nil, r)
	if len(diagnostic.Errors) > 0 {
		return answer{}, errors.New(diagnostic.Errors[0].Message)
	}
	last := -1
	for _, reason := range diagnostic.Reasons {
		i, err := strconv.Atoi(strings.TrimPrefix(string(reason.PolicyID), "policy"))
		if err != nil {
			return answer{}, err
		}
		last = max(last, i)
	}
	if last < 0 {
		return answer{"ask", ""}, nil
	}
	return answer{e.rules[last].Action, e.rules[last].Pattern}, nil
}

func (e *cedarEngine) decide(q question) (answer, error) { return e.authorize(e.request(q)) }

// casbinModel decides by the first policy that matches.
const casbinModel = `
[request_definition]
r = surface, value
[policy_definition]
p = surface, pattern, action
[policy_effect]
e = priority(p.eft) || deny
[matchers]
m = r.surface == p.surface && star(r.value, p.pattern)
`

// casbinEngine has the rules from last to first, so that casbin may stop at the
// first that matches.
type casbinEngine struct{ enforcer *casbin.Enforcer }

func newCasbin(tb testing.TB, list []rule) *casbinEngine {
	tb.Helper()
	m, err := model.NewModelFromString(casbinModel)
	if err != nil {
		tb.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		tb.Fatal(err)
	}
	e.AddFunction("star", func(args ...any) (any, error) {
		return star(args[0].(string), args[1].(string)), nil
	})
	all := make([][]string, 0, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		all = append(all, []string{list[i].Surface, list[i].Pattern, list[i].Action})
	}
	if _, err := e.AddPolicies(all); err != nil {
		tb.Fatal(err)
	}
	return &casbinEngine{e}
}

// star reports whether value matches a pattern with at most one star.
func star(value, pattern string) bool {
	head, tail, ok := strings.Cut(pattern, "*")
	if !ok {
		return value == pattern
	}
	return len(value) >= len(head)+len(tail) && strings.HasPrefix(value, head) && strings.HasSuffix(value, tail)
}

func (e *casbinEngine) decide(q question) (answer, error) {
	ok, why, err := e.enforcer.EnforceEx(q.Surface, q.Value)
	if err != nil {
		return answer{}, err
	}
	if !ok {
		return answer{"ask", ""}, nil
	}
	return answer{why[2], why[1]}, nil
}

// opaModule finds the rules of a surface that match. Prefix and suffix are an
// order of magnitude sooner than glob.match, which keeps only a hundred
// patterns compiled.
const opaModule = `package policy

hits := [r |
	some r in data.rules[input.surface]
	startswith(input.value, r.head)
	endswith(input.value, r.tail)
	count(input.value) >= r.least
	count(input.value) <= r.most
]

decision := hits[count(hits) - 1]
`

// opaEngine is a prepared query on rules that are data.
type opaEngine struct{ query rego.PreparedEvalQuery }

func newOPA(tb testing.TB, list []rule) *opaEngine {
	tb.Helper()
	data := map[string]any{}
	for _, r := range list {
		head, tail, ok := strings.Cut(r.Pattern, "*")
		least, most := len(head)+len(tail), 1<<30
		if !ok {
			most = least
		}
		all, _ := data[r.Surface].([]any)
		data[r.Surface] = append(all, map[string]any{
			"head": head, "tail": tail, "least": least, "most": most, "pattern": r.Pattern, "action": r.Action,
		})
	}
	store := inmem.NewFromObjectWithOpts(map[string]any{"rules": data}, inmem.OptRoundTripOnWrite(true), inmem.OptReturnASTValuesOnRead(true))
	q, err := rego.New(rego.Query("x = data.policy.decision"), rego.Module("policy.rego", opaModule), rego.Store(store)).PrepareForEval(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return &opaEngine{q}
}

func (e *opaEngine) input(q question) ast.Value {
	return ast.NewObject(ast.Item(ast.StringTerm("surface"), ast.StringTerm(q.Surface)), ast.Item(ast.StringTerm("value"), ast.StringTerm(q.Value)))
}

func (e *opaEngine) eval(ctx context.Context, in ast.Value) (answer, error) {
	results, err := e.query.Eval(ctx, rego.EvalParsedInput(in))
	if err != nil {
		return answer{}, err
	}
	if len(results) == 0 {
		return answer{"ask", ""}, nil
	}
	found, ok := results[0].Bindings["x"].(map[string]any)
	if !ok {
		return answer{}, fmt.Errorf("opa says %v", results[0].Bindings)
	}
	action, _ := found["action"].(string)
	pattern, _ := found["pattern"].(string)
	return answer{action, pattern}, nil
}

func (e *opaEngine) decide(q question) (answer, error) {
	return e.eval(context.Background(), e.input(q))
}
