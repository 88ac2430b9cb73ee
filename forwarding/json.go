package forwarding

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// The readers of this room take JSON as ECMAScript's JSON.parse would, with
// three differences that fail closed: text that is not valid UTF-8, nesting
// deeper than encoding/json goes (10,000), and an object that names a key
// twice are refused, since two programs could read them differently.
// Keys are compared exactly, unlike encoding/json's struct matching.

var errTwice = errors.New("names a key twice")

// parseObject reads a whole document that must be one object.
func parseObject(data []byte) (map[string][]byte, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("is not valid UTF-8")
	}
	if !json.Valid(data) {
		// Valid has no message; ask again for one.
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("is not valid JSON: %w", err)
		}
		return nil, errors.New("is not valid JSON")
	}
	return members(data)
}

// members splits an object into its members' raw values. raw must be valid JSON.
func members(raw []byte) (map[string][]byte, error) {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil, errors.New("is not an object")
	}
	all := map[string][]byte{}
	for i = space(raw, i+1); raw[i] != '}'; i = space(raw, i) {
		if raw[i] == ',' {
			i = space(raw, i+1)
		}
		end := valueEnd(raw, i)
		var key string
		if err := json.Unmarshal(raw[i:end], &key); err != nil {
			return nil, fmt.Errorf("has an unreadable key: %w", err)
		}
		i = space(raw, space(raw, end)+1) // over the colon
		end = valueEnd(raw, i)
		if _, ok := all[key]; ok {
			return nil, fmt.Errorf("%w: %q", errTwice, key)
		}
		all[key], i = raw[i:end], end
	}
	return all, nil
}

// elements splits an array. raw must be valid JSON.
func elements(raw []byte) ([][]byte, bool) {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '[' {
		return nil, false
	}
	var all [][]byte
	for i = space(raw, i+1); raw[i] != ']'; i = space(raw, i) {
		if raw[i] == ',' {
			i = space(raw, i+1)
		}
		end := valueEnd(raw, i)
		all, i = append(all, raw[i:end]), end
	}
	return all, true
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is the index after the value that starts at i.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for ; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // a number, true, false or null ended before
			}
			depth--
		case ',', ' ', '\t', '\n', '\r', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// text reads a JSON string. A lone surrogate becomes U+FFFD, which is also
// what Node puts into a file name or a command in its place.
func text(raw []byte) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// textOrNull reads a string or null; an absent value reads as null.
func textOrNull(raw []byte) (*string, bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	s, ok := text(raw)
	return &s, ok
}

func texts(raw []byte) ([]string, bool) {
	list, ok := elements(raw)
	if !ok {
		return nil, false
	}
	all := make([]string, len(list))
	for i, e := range list {
		if all[i], ok = text(e); !ok {
			return nil, false
		}
	}
	return all, true
}

func boolean(raw []byte) (value, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// maxTime is the largest time value of ECMAScript, in milliseconds.
const maxTime = 8.64e15

// millis reads a time in ms since 1970: a number that a float64 holds and an
// ECMAScript Date can be made from. Fractions are cut off.
func millis(raw []byte) (int64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) > maxTime {
		return 0, false
	}
	return int64(f), true
}
