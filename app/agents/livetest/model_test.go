//go:build linux

package livetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tool is one call that the model makes. An input that is a string makes a call
// in plain text, as the Responses API has.
type tool struct {
	name  string
	input any
	space string // the Responses API keeps some tools in namespaces
}

// script is what the model does: its n-th call, for the conversation of the
// user or for that of a subagent, whose prompt says CHILD.
type script struct{ main, child []tool }

// model plays a script in the words of all the APIs that the agents speak.
type model struct {
	*httptest.Server
	script script

	mu      sync.Mutex
	serial  int
	results []string // what tools gave, in the order in which the model read it
	last    string   // what it said last
}

func newModel(t *testing.T, s script) *model {
	m := &model{script: s}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.anthropic)
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"input_tokens":10}`) })
	mux.HandleFunc("POST /v1/chat/completions", m.chat)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m1","object":"model"}]}`)
	})
	mux.HandleFunc("POST /v1beta/models/{verb}", m.gemini)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// message is one message of a conversation, whatever the API.
type message struct {
	role    string // user, assistant or tool
	text    string
	calls   bool
	results []string
}

// say decides the next reply: calls, or text.
func (m *model) say(all []message, tools bool) ([]tool, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !tools {
		return nil, "ok"
	}
	steps, start := m.script.main, 0
	for i, msg := range all {
		if msg.role == "user" && strings.Contains(msg.text, "CHILD") {
			steps, start = m.script.child, i
			break
		}
	}
	turn := 0
	var results []string
	for _, msg := range all[start:] {
		if msg.calls {
			turn++
			results = nil
		}
		results = append(results, msg.results...)
	}
	for _, r := range results {
		if !slices.Contains(m.results, r) {
			m.results = append(m.results, r)
		}
	}
	if turn < len(steps) {
		return steps[turn : turn+1], ""
	}
	m.last = "DONE: " + strings.Join(results, " | ")
	return nil, m.last
}

func (m *model) id(kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serial++
	return fmt.Sprintf("%s_mock_%d", kind, m.serial)
}

// seen is everything that the model was told of its calls.
func (m *model) seen() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.results, "\n")
}

// content is text that may be a list of blocks.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*c = content(s)
		return nil
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &blocks) == nil {
		for _, b := range blocks {
			*c += content(b.Text)
		}
	}
	return nil
}

func read(w http.ResponseWriter, r *http.Request, v any) bool {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

type object = map[string]any

// stream writes server-sent events.
type stream struct{ w http.ResponseWriter }

func (s stream) send(event string, v any) {
	s.w.Header().Set("Content-Type", "text/event-stream")
	data, _ := json.Marshal(v)
	if event != "" {
		fmt.Fprintf(s.w, "event: %s\n", event)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
}

// anthropic is the Messages API.
func (m *model) anthropic(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if !read(w, r, &body) {
		return
	}
	var all []message
	for _, in := range body.Messages {
		msg := message{role: in.Role}
		var blocks []struct {
			Type    string  `json:"type"`
			Text    string  `json:"text"`
			Content content `json:"content"`
		}
		if json.Unmarshal(in.Content, &msg.text) != nil && json.Unmarshal(in.Content, &blocks) == nil {
			for _, b := range blocks {
				switch b.Type {
				case "text":
					msg.text += b.Text + "\n"
				case "tool_use":
					msg.calls = true
				case "tool_result":
					msg.results = append(msg.results, string(b.Content))
				}
			}
		}
		all = append(all, msg)
	}
	calls, text := m.say(all, len(body.Tools) > 0)
	var blocks []object
	stop := "end_turn"
	for _, c := range calls {
		stop = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": m.id("toolu"), "name": c.name, "input": c.input})
	}
	if text != "" {
		blocks = append(blocks, object{"type": "text", "text": text})
	}
	msg := object{"id": m.id("msg"), "type": "message", "role": "assistant", "model": body.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 1}}
	if !body.Stream {
		msg["content"], msg["stop_reason"] = blocks, stop
		data, _ := json.Marshal(msg)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
		return
	}
	s := stream{w}
	s.send("message_start", object{"type": "message_start", "message": msg})
	for i, b := range blocks {
		empty, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": b["text"]}
		if b["type"] == "tool_use" {
			input, _ := json.Marshal(b["input"])
			empty = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(input)}
		}
		s.send("content_block_start", object{"type": "content_block_start", "index": i, "content_block": empty})
		s.send("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
		s.send("content_block_stop", object{"type": "content_block_stop", "index": i})
	}
	s.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	s.send("message_stop", object{"type": "message_stop"})
}

// chat is the Chat Completions API.
func (m *model) chat(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Role    string            `json:"role"`
			Content content           `json:"content"`
			Calls   []json.RawMessage `json:"tool_calls"`
		} `json:"messages"`
	}
	if !read(w, r, &body) {
		return
	}
	var all []message
	for _, in := range body.Messages {
		msg := message{role: in.Role, text: string(in.Content), calls: len(in.Calls) > 0}
		if in.Role == "tool" {
			msg.results = []string{string(in.Content)}
		}
		all = append(all, msg)
	}
	calls, text := m.say(all, len(body.Tools) > 0)
	reply, finish := object{"role": "assistant", "content": text}, "stop"
	var list []object
	for i, c := range calls {
		args, _ := json.Marshal(c.input)
		list = append(list, object{"index": i, "id": m.id("call"), "type": "function", "function": object{"name": c.name, "arguments": string(args)}})
		reply, finish = object{"role": "assistant", "content": nil, "tool_calls": list}, "tool_calls"
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	base := func(choices ...object) object {
		return object{"id": "chatcmpl-mock", "created": 1, "model": body.Model, "object": "chat.completion.chunk", "choices": append([]object{}, choices...)}
	}
	if !body.Stream {
		v := base(object{"index": 0, "message": reply, "finish_reason": finish})
		v["object"], v["usage"] = "chat.completion", usage
		data, _ := json.Marshal(v)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
		return
	}
	s := stream{w}
	s.send("", base(object{"index": 0, "delta": reply, "finish_reason": nil}))
	s.send("", base(object{"index": 0, "delta": object{}, "finish_reason": finish}))
	end := base()
	end["usage"] = usage
	s.send("", end)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// responses is the Responses API.
func (m *model) responses(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string            `json:"model"`
		Tools []json.RawMessage `json:"tools"`
		Input []struct {
			Type    string  `json:"type"`
			Role    string  `json:"role"`
			Content content `json:"content"`
			Output  content `json:"output"`
		} `json:"input"`
	}
	if !read(w, r, &body) {
		return
	}
	var all []message
	for _, in := range body.Input {
		switch {
		case strings.HasSuffix(in.Type, "_call_output"):
			all = append(all, message{role: "tool", results: []string{string(in.Output)}})
		case strings.HasSuffix(in.Type, "_call"):
			all = append(all, message{role: "assistant", calls: true})
		case in.Type == "message":
			all = append(all, message{role: in.Role, text: string(in.Content)})
		}
	}
	calls, text := m.say(all, len(body.Tools) > 0)
	var output []object
	for _, c := range calls {
		item := object{"id": m.id("fc"), "call_id": m.id("call"), "name": c.name, "status": "completed"}
		if c.space != "" {
			item["namespace"] = c.space
		}
		if plain, ok := c.input.(string); ok {
			item["type"], item["input"] = "custom_tool_call", plain
		} else {
			args, _ := json.Marshal(c.input)
			item["type"], item["arguments"] = "function_call", string(args)
		}
		output = append(output, item)
	}
	if text != "" {
		output = append(output, object{"type": "message", "id": m.id("msg"), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": text, "annotations": []any{}}}})
	}
	response := object{"id": m.id("resp"), "object": "response", "created_at": 1, "model": body.Model, "status": "completed", "output": output,
		"usage": object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15}}
	s, n := stream{w}, 0
	send := func(kind string, v object) {
		v["type"], v["sequence_number"] = kind, n
		n++
		s.send(kind, v)
	}
	send("response.created", object{"response": object{"id": response["id"], "object": "response", "created_at": 1, "model": body.Model, "status": "in_progress", "output": []any{}, "usage": nil}})
	for i, item := range output {
		send("response.output_item.added", object{"output_index": i, "item": item})
		if item["type"] == "message" {
			send("response.output_text.delta", object{"item_id": item["id"], "output_index": i, "content_index": 0, "delta": text})
		}
		send("response.output_item.done", object{"output_index": i, "item": item})
	}
	send("response.completed", object{"response": response})
}

// gemini is the generateContent API.
func (m *model) gemini(w http.ResponseWriter, r *http.Request) {
	name, verb, _ := strings.Cut(r.PathValue("verb"), ":")
	if verb == "countTokens" {
		fmt.Fprint(w, `{"totalTokens":10}`)
		return
	}
	type part struct {
		Text     string          `json:"text"`
		Call     json.RawMessage `json:"functionCall"`
		Response *struct {
			Response struct {
				Output content `json:"output"`
				Error  content `json:"error"`
			} `json:"response"`
		} `json:"functionResponse"`
	}
	var body struct {
		Tools    []json.RawMessage `json:"tools"`
		Config   map[string]any    `json:"generationConfig"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []part `json:"parts"`
		} `json:"contents"`
	}
	if !read(w, r, &body) {
		return
	}
	var all []message
	for _, in := range body.Contents {
		msg := message{role: in.Role}
		for _, p := range in.Parts {
			msg.text += p.Text
			msg.calls = msg.calls || p.Call != nil
			if p.Response != nil {
				msg.results = append(msg.results, string(p.Response.Response.Output+p.Response.Response.Error))
			}
		}
		all = append(all, msg)
	}
	calls, text := m.say(all, len(body.Tools) > 0)
	if len(body.Tools) == 0 && body.Config["responseJsonSchema"] != nil {
		text = "{}"
	}
	var parts []object
	for _, c := range calls {
		parts = append(parts, object{"functionCall": object{"id": m.id("call"), "name": c.name, "args": c.input}})
	}
	if text != "" {
		parts = append(parts, object{"text": text})
	}
	reply := object{
		"candidates":    []object{{"index": 0, "content": object{"role": "model", "parts": parts}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}, "modelVersion": name, "responseId": m.id("resp"),
	}
	if verb == "generateContent" {
		data, _ := json.Marshal(reply)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
		return
	}
	stream{w}.send("", reply)
}
