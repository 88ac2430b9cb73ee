package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var update = flag.Bool("update", false, "write the schema anew")

const schemaFile = "../../assets/policy.schema.json"

// object is a JSON object that keeps the order of its keys.
type ordered []struct {
	key string
	val any
}

func (o *ordered) set(key string, val any) {
	*o = append(*o, struct {
		key string
		val any
	}{key, val})
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, kv := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		k, _ := json.Marshal(kv.key)
		v, err := json.Marshal(kv.val)
		if err != nil {
			return nil, err
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func obj(pairs ...any) ordered {
	var o ordered
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// generate builds the schema from File, Entry, ShellTool and Link.
func generate(t *testing.T) []byte {
	t.Helper()
	actions := obj("enum", []string{"allow", "ask", "deny"})
	entry := structSchema(reflect.TypeFor[Entry]())
	for i := range entry {
		if entry[i].key != "properties" {
			continue
		}
		props := entry[i].val.(ordered)
		for j := range props {
			p := props[j].val.(ordered)
			switch props[j].key {
			case "action":
				props[j].val = obj("description", p[0].val, "enum", []string{"allow", "ask", "deny"})
			case "reason":
				p.set("maxLength", MaxReason)
				props[j].val = p
			}
		}
	}
	file := structSchema(reflect.TypeFor[File]())
	for i := range file {
		if file[i].key != "properties" {
			continue
		}
		props := file[i].val.(ordered)
		for j := range props {
			p := props[j].val.(ordered)
			switch props[j].key {
			case "permission":
				props[j].val = obj("description", p[0].val, "type", "object", "propertyNames", obj("minLength", 1),
					"additionalProperties", obj("anyOf", []any{
						obj("$ref", "#/$defs/action"),
						obj("type", "object", "propertyNames", obj("minLength", 1), "additionalProperties", obj("anyOf", []any{
							obj("$ref", "#/$defs/action"), obj("$ref", "#/$defs/entry"),
						})),
					}))
			case "legacyRequests":
				props[j].val = obj("description", p[0].val, "enum", []string{"ask", "resolve"})
			}
		}
	}
	root := obj("$schema", "https://json-schema.org/draft/2020-12/schema", "title", "Nod policy", "description", "Keys described as Nod only may stand in policy.jsonc, not in the agent's own config.json. Comments are fine, trailing commas are not.")
	root = append(root, file...)
	root.set("$defs", obj("action", actions, "entry", entry))
	data, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func structSchema(typ reflect.Type) ordered {
	var props ordered
	required := []string{}
	for f := range fields(typ) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		doc := f.Tag.Get("doc")
		if f.Tag.Get("nod") != "" {
			doc = "Nod only. " + doc
		}
		p := append(obj("description", doc), typeSchema(f.Type)...)
		props.set(name, p)
		if opts != "omitempty" {
			required = append(required, name)
		}
	}
	o := obj("type", "object", "properties", props, "additionalProperties", false)
	if len(required) > 0 {
		o.set("required", required)
	}
	return o
}

func fields(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

func typeSchema(typ reflect.Type) ordered {
	switch typ.Kind() {
	case reflect.String:
		return obj("type", "string")
	case reflect.Bool:
		return obj("type", "boolean")
	case reflect.Int:
		return obj("type", "integer", "minimum", 1)
	case reflect.Slice:
		return obj("type", "array", "items", obj("type", "string", "minLength", 1))
	case reflect.Map:
		if typ.Elem().Kind() == reflect.Struct {
			return obj("type", "object", "propertyNames", obj("minLength", 1), "additionalProperties", structSchema(typ.Elem()))
		}
	case reflect.Struct:
		return structSchema(typ)
	}
	return nil
}

func TestSchemaIsUpToDate(t *testing.T) {
	want := generate(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("assets/policy.schema.json does not fit the Go types; run go test ./engine/policy -run Schema -update")
	}
}

// TestSchemaKnowsEveryKey holds the reader's list of keys against the types.
func TestSchemaKnowsEveryKey(t *testing.T) {
	want := map[string]bool{}
	for f := range fields(reflect.TypeFor[File]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want[name] = true
		if isNodKey(name) != (f.Tag.Get("nod") != "") {
			t.Errorf("the types and the reader disagree whether %q is Nod's own", name)
		}
	}
	for _, k := range topKeys {
		if !want[k] {
			t.Errorf("the reader knows %q, the types do not", k)
		}
		delete(want, k)
	}
	for k := range want {
		t.Errorf("the types know %q, the reader does not", k)
	}
}

// TestSchemaAgreesWithReader runs the files of testdata through both. What
// begins with good- must pass both, bad- fail both; reader- fails the reader
// only, for what a schema cannot say.
func TestSchemaAgreesWithReader(t *testing.T) {
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(generate(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.schema.json", raw); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/*.jsonc")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d files in testdata, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, _, _, readErr := Parse(name, data, Nod, "/home/u")
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(standard(t, data)))
			if err != nil {
				t.Fatal(err)
			}
			schemaErr := schema.Validate(v)
			base := filepath.Base(name)
			wantReader, wantSchema := strings.HasPrefix(base, "good-"), !strings.HasPrefix(base, "bad-")
			if (readErr == nil) != wantReader {
				t.Errorf("the reader says %v", readErr)
			}
			if (schemaErr == nil) != wantSchema {
				t.Errorf("the schema says %v", schemaErr)
			}
		})
	}
}
