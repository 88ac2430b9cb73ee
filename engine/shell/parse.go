package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Reader reads programs. Its zero value is ready; it is safe for concurrent use
// and keeps parsers to use them again.
type Reader struct {
	parsers sync.Pool
}

var errNested = errors.New("nested too deeply")

// source hands the text to the parser in pieces and refuses to go on once the
// parser's recursion is too deep: the Go stack has a limit that ends the whole
// process. A piece of n bytes can deepen it by no more than n levels.
type source struct {
	text string
	at   int
	deep bool
}

const (
	sourcePiece = 512  // bytes
	stackLimit  = 4000 // frames, at which reading on is refused
)

func (s *source) Read(p []byte) (int, error) {
	if s.at == len(s.text) {
		return 0, io.EOF
	}
	if s.at > 0 {
		var pc [1]uintptr
		if runtime.Callers(stackLimit, pc[:]) > 0 {
			s.deep = true
			return 0, errNested
		}
	}
	n := copy(p[:min(len(p), sourcePiece)], s.text[s.at:])
	s.at += n
	return n, nil
}

// parse returns the statements of text, the text they refer to (which may
// differ where bash reads on and the parser does not), and why reading ended
// early.
func (rd *Reader) parse(text string) (stmts []*syntax.Stmt, read string, broken string) {
	switch {
	case len(text) > maxText:
		return nil, text, "the command is longer than 1 MiB"
	case strings.Count(text, "\n") > maxLines:
		return nil, text, "the command has too many lines"
	}
	if strings.IndexByte(text, 0) >= 0 {
		text, broken = strings.ReplaceAll(text, "\x00", ""), "it has a NUL character"
	}
	if !utf8.ValidString(text) {
		text, broken = strings.ToValidUTF8(text, "\uFFFD"), "it is not valid UTF-8"
	}
	if whole, ok := operatorsJoined(text); ok {
		text, broken = whole, either(broken, "an operator begins on one line and goes on on the next")
	}
	if backquotesNest(text) {
		broken = "it nests backquotes around backslashes"
	}
	if crlf, ok := carriageReturns(text); ok {
		r := mending{rd, maxMends}
		stmts, read, why, err := r.read(crlf)
		if err == nil {
			return stmts, read, either(broken, why)
		}
		broken = either(broken, reason(err))
	}
	r := mending{rd, maxMends}
	stmts, read, why, err := r.read(text)
	if err != nil {
		return stmts, read, reason(err)
	}
	return stmts, read, either(broken, why)
}

// either is the first of two reasons that is one.
func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// carriageReturns changes text where a line ends in a backslash and a carriage
// return. To bash the backslash quotes the carriage return and the line ends;
// to the parser the line goes on. A space between keeps them apart.
func carriageReturns(text string) (string, bool) {
	if !strings.Contains(text, "\\\r\n") {
		return "", false
	}
	return strings.ReplaceAll(text, "\\\r\n", "\\\r \n"), true
}

// mending reads a text and, where it goes wrong, what bash would read instead.
type mending struct {
	rd   *Reader
	left int // texts that may still be tried
}

// read returns the statements of text, the text they refer to, and why that is
// not to be trusted. Where nothing can be mended, it returns the error of text
// itself with as many statements as any try gave.
func (m *mending) read(text string) (stmts []*syntax.Stmt, read, why string, err error) {
	stmts, err = m.rd.once(text)
	if fixed := comments(stmts, text); fixed != "" {
		if m.left == 0 {
			return stmts, text, "it has comments that are not understood", err
		}
		m.left--
		return m.read(fixed)
	}
	if err == nil {
		fixed, why := documents(stmts, text)
		if fixed == "" || m.left == 0 {
			return stmts, text, why, nil
		}
		m.left--
		if got, read, also, err := m.read(fixed); err == nil {
			return got, read, either(why, also), nil
		}
		return stmts, text, either(why, "a here-document ends in a place that is not understood"), nil
	}
	read = text
	for _, try := range mends(text, err) {
		if m.left == 0 {
			break
		}
		m.left--
		got, from, also, failed := m.read(try.text)
		if failed == nil {
			return got, from, either(try.why, also), nil
		}
		if len(got) > len(stmts) {
			stmts, read = got, from
		}
	}
	return stmts, read, "", err
}

// operatorsJoined takes the backslash and the end of the line out of `$(`, `<(`,
// `<<-` and their like that are written over several lines. Bash does so first of
// all, the parser takes what is on the first line for itself.
func operatorsJoined(text string) (string, bool) {
	if !strings.Contains(text, "\\\n") {
		return "", false
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(text); i++ {
		if strings.IndexByte("$<>", text[i]) < 0 {
			continue
		}
		end := i + 1
		for strings.HasPrefix(text[end:], "\\\n") {
			end += 2
		}
		if end > i+1 && end < len(text) && strings.IndexByte("(<>-", text[end]) >= 0 {
			b.WriteString(text[at : i+1])
			at, i = end, end-1
		}
	}
	b.WriteString(text[at:])
	return b.String(), at > 0
}

// backquotesNest reports whether backquotes stand inside backquotes in a text
// with two backslashes in a row. Bash takes one level of backslashes off at
// each level of nesting, the parser at the first only, so that what runs
// inside may be another command than the one that is read.
func backquotesNest(text string) bool {
	return strings.Contains(text, "\\`") && strings.Contains(text, `\\`)
}

// once parses text as it is. A statement that is read before the text goes
// wrong is returned, for bash runs it before it gets there.
func (rd *Reader) once(text string) (stmts []*syntax.Stmt, failed error) {
	parser, _ := rd.parsers.Get().(*syntax.Parser)
	if parser == nil {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	defer func() {
		if r := recover(); r != nil {
			failed = fmt.Errorf("the parser failed: %v", r)
			return // and this parser is not used again
		}
		rd.parsers.Put(parser)
	}()
	src := &source{text: text}
	for s, err := range parser.StmtsSeq(src) {
		if err != nil {
			failed = err
			break
		}
		stmts = append(stmts, s)
	}
	if src.deep {
		return stmts, errNested
	}
	return stmts, failed
}

// word parses text as bash reads it between double quotes.
func (rd *Reader) word(text string) (w *syntax.Word, failed error) {
	defer func() {
		if r := recover(); r != nil {
			failed = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	src := &source{text: text}
	w, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Document(src)
	if src.deep {
		err = errNested
	}
	return w, err
}

const maxMends = 10

// mended is another text to be read, and why it is not to be trusted.
type mended struct{ text, why string }

// mends are changes to text where bash goes on and the parser gives up: a
// here-document that the end of the text ends, or the parenthesis of a
// substitution behind its mark, and a `((` that opens no arithmetic but two
// subshells.
//
// In arithmetic, bash expands what a subshell would take for a comment, so a
// text mended that way is read as far as possible but not trusted: why says so.
func mends(text string, err error) []mended {
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &le):
		pe.Pos = le.Pos
	case !errors.As(err, &pe):
		return nil
	}
	if mark, ok := strings.CutPrefix(pe.Text, "unclosed here-document `"); ok {
		mark = strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(strings.TrimSuffix(mark, "`"))
		list := []mended{{text: strings.TrimSuffix(text, "\n") + "\n" + mark + "\n"}}
		if at := markBeforeParen(text, int(pe.Pos.Offset()), mark); at > 0 {
			list = append([]mended{{text: text[:at] + "\n" + text[at:]}}, list...)
		}
		return list
	}
	if at := int(pe.Pos.Offset()); strings.Contains(pe.Text, "negate") || strings.HasPrefix(pe.Text, "`!`") {
		// Bash takes more negations than the parser: leave one out.
		if at < len(text) && text[at] == '!' {
			return []mended{{text[:at] + " " + text[at+1:], "it negates in a place that is not understood"}}
		}
	}
	if strings.Contains(pe.Text, "test operator") && strings.Contains(text, "]]`") {
		// The parser takes the backquote behind a test for a part of its end.
		return []mended{{text: strings.ReplaceAll(text, "]]`", "]] `")}}
	}
	// Whatever went wrong, an opening of arithmetic before it may be none.
	at := min(int(pe.Pos.Offset())+2, len(text))
	if i := strings.LastIndex(text[:at], "(("); i >= 0 {
		for i > 0 && text[i-1] == '(' {
			i--
		}
		return []mended{{text[:i+1] + " " + text[i+1:], "it only looks like arithmetic"}}
	}
	return nil
}

func reason(err error) string {
	if errors.Is(err, errNested) {
		return "it is nested too deeply"
	}
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		return pe.Text
	}
	return err.Error()
}
