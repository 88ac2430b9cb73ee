package shell

import "strings"

// Some programs run a text that one of their options gives: `tar --to-command`,
// `split --filter`, `git rebase -x`. What such a text runs counts for deny and
// ask; the program itself does what the rules say of it.

// textOptions is how a program takes the texts that it runs, from tar(1),
// split(1), sort(1), rsync(1), ssh(1) and git(1).
type textOptions struct {
	shorts string // short options with a text
	longs  string // long options with a text
	whole  string // of shorts, those whose value is a text without of
	values string // other short options with a value
	plain  string // long options without a text whose name begins that of one with a text
	// usual are first words of texts that need no rule of their own: of them a
	// deny counts, and no ask.
	usual string
	// of cuts the text out of an option's value; ok is false if it has none.
	of func(value string) (text string, ok bool)
}

const packers = "gzip pigz bzip2 pbzip2 lbzip2 xz pixz zstd pzstd zstdmt lz4 lzip plzip lzma lzop compress brotli"

func takesTexts(name string) (textOptions, bool) {
	switch name {
	case "tar", "gtar":
		return textOptions{shorts: "IF", values: "fbCTXgKLNVH", usual: packers, plain: "checkpoint",
			longs: "to-command checkpoint-action use-compress-program info-script new-volume-script rsh-command",
			of: func(v string) (string, bool) {
				text, exec := strings.CutPrefix(v, "exec=")
				return text, exec || v != "" && !word("dot echo sleep totals ttyout bell", strings.TrimRight(v, "0123456789=")) && !strings.HasPrefix(v, "echo=") && !strings.HasPrefix(v, "ttyout=")
			}}, true
	case "split":
		return textOptions{longs: "filter", values: "abClnt"}, true
	case "sort":
		return textOptions{longs: "compress-program", values: "koStT", usual: packers}, true
	case "rsync":
		return textOptions{shorts: "e", longs: "rsh", values: "BTMf", usual: "ssh rsh"}, true
	case "ssh", "scp", "sftp":
		o := textOptions{shorts: "o", values: "bcDEeFIiJLlmOpQRSWwPX", usual: "ssh", of: func(v string) (string, bool) {
			v = strings.TrimSpace(v)
			end := strings.IndexAny(v, " \t=")
			if end < 0 || !word("proxycommand localcommand knownhostscommand", strings.ToLower(v[:end])) {
				return "", false
			}
			text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(v[end:]), "="))
			return text, text != "none"
		}}
		if name != "ssh" {
			o.shorts, o.whole, o.values = "oSD", "SD", "cFiJlPXbBR" // -D is the program that serves, on this side
		}
		return o, true
	case "wget":
		return textOptions{longs: "use-askpass", values: "OoaAbBDeiIlPQRtTUwX"}, true
	case "mosh":
		return textOptions{longs: "ssh", values: "p", usual: "ssh"}, true
	case "git rebase":
		return textOptions{shorts: "x", longs: "exec", values: "sXSC"}, true
	case "git difftool":
		return textOptions{shorts: "x", longs: "extcmd", values: "t"}, true
	case "git grep":
		return textOptions{shorts: "O", longs: "open-files-in-pager", values: "ABCefm", usual: "less more cat vi vim"}, true
	case "git clone":
		return textOptions{shorts: "u", longs: "upload-pack", values: "bcjo"}, true
	case "git fetch", "git pull", "git ls-remote", "git fetch-pack":
		return textOptions{longs: "upload-pack exec", values: "joXsS"}, true
	case "git push", "git send-pack", "git archive":
		return textOptions{longs: "receive-pack exec", values: "o"}, true
	case "git send-email":
		return textOptions{longs: "to-cmd cc-cmd header-cmd sendmail-cmd", plain: "to cc"}, true
	case "git filter-branch":
		return textOptions{longs: "env-filter tree-filter index-filter parent-filter msg-filter commit-filter tag-name-filter setup", values: "d"}, true
	}
	return textOptions{}, false
}

// texts reads the texts that words[from:], the options of the program name, have
// it run. The unit at is that program.
func (r *reading) texts(name string, args []arg, words []string, from int, st *state, in where, at int) {
	t, ok := takesTexts(name)
	if !ok {
		return
	}
	run := func(i, skip int, whole bool) {
		if i >= len(words) || skip > len(words[i]) {
			return
		}
		text := words[i][skip:]
		if t.of != nil && !whole {
			if text, ok = t.of(text); !ok {
				return
			}
		}
		if skip == 0 && r.dynamic(args[i].w) {
			r.floor(at, FloorOpaque, name+" runs a text as a program")
			return
		}
		own := in
		first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		own.guess = own.guess || word(t.usual, baseName(first))
		r.payload(text, st, own, at, args[i].start, false)
	}
	i := from
	if name == "tar" && i < len(words) && !strings.HasPrefix(words[i], "-") {
		// The old style: the values follow in the order of the letters.
		next := i + 1
		for _, c := range words[i] {
			if strings.ContainsRune(t.shorts, c) {
				run(next, 0, false)
			}
			if strings.ContainsRune(t.shorts+t.values, c) {
				next++
			}
		}
		i = next
	}
	host := false // ssh's was given
	for ; i < len(words); i++ {
		w := words[i]
		if name == "ssh" && !strings.HasPrefix(w, "-") {
			if host {
				return // the rest runs elsewhere
			}
			host = true
		}
		if w == "--" {
			return
		}
		if long, ok := strings.CutPrefix(w, "--"); ok {
			long, _, inline := strings.Cut(long, "=")
			switch {
			case !begins(t.longs, long) || word(t.plain, long):
			case inline:
				run(i, len(long)+3, false)
			case name != "git grep":
				i++
				run(i, 0, false)
			}
			continue
		}
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		for j := 1; j < len(w); j++ {
			own := strings.IndexByte(t.shorts, w[j]) >= 0
			if !own && strings.IndexByte(t.values, w[j]) < 0 {
				continue
			}
			skip := j + 1
			if skip == len(w) && name != "git grep" {
				i++
				skip = 0
			}
			if own {
				run(i, skip, strings.IndexByte(t.whole, w[j]) >= 0)
			}
			break
		}
	}
}

// gitTexts reads what git's sub-command words[i] runs.
func (r *reading) gitTexts(args []arg, words []string, i int, st *state, in where, at int) {
	if i >= len(words) {
		return
	}
	r.texts("git "+words[i], args, words, i+1, st, in, at)
	rest := words[i+1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && words[i] != "config" {
		rest = rest[1:]
	}
	switch {
	case words[i] == "clone":
		for j := i + 1; j < len(words); j++ {
			setting, ok := strings.CutPrefix(words[j], "-c")
			if long, value, _ := strings.Cut(words[j], "="); strings.HasPrefix(long, "--c") && begins("--config", long) {
				setting, ok = value, true
			}
			if ok && setting == "" && j+1 < len(words) {
				j++
				setting = words[j]
			}
			key, value, _ := strings.Cut(setting, "=")
			section, name, _ := strings.Cut(strings.ToLower(key), ".")
			if ok && gitRuns(section, name, value) {
				r.floor(at, FloorIndirection, "setting "+key+" changes what git runs")
			}
		}
	case words[i] == "submodule" && len(rest) > 1 && rest[0] == "foreach":
		for rest = rest[1:]; len(rest) > 1 && strings.HasPrefix(rest[0], "-"); {
			rest = rest[1:]
		}
		r.payload(strings.Join(rest, " "), st, in, at, args[i].start, false)
	case words[i] == "bisect" && len(rest) > 1 && rest[0] == "run":
		var quoted []string
		for n, w := range rest[1:] {
			if !r.dynamic(args[len(words)-len(rest)+1+n].w) {
				w = requoted(w)
			}
			quoted = append(quoted, w)
		}
		r.payload(strings.Join(quoted, " "), st, in, at, args[i].start, false)
	case words[i] == "config":
		for len(rest) > 1 {
			key, value := rest[0], rest[1]
			rest = rest[1:]
			given := args[len(words)-len(rest)]
			section, name, ok := strings.Cut(strings.ToLower(key), ".")
			switch text, shell := strings.CutPrefix(value, "!"); {
			case !ok || strings.HasPrefix(key, "-"):
				continue
			case section == "alias" && shell:
				r.payload(text, st, in, at, args[i].start, false)
			case section != "alias" && gitRuns(section, name, value):
				// The command counts now: nothing is seen of it when git runs it.
				if text, ok := gitText(section, name, value); ok && !r.dynamic(given.w) {
					r.payload(text, st, in, at, given.start, false)
				} else {
					r.floor(at, FloorIndirection, "setting "+key+" changes what git runs")
				}
			}
		}
	}
}
