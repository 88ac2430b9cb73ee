package shell

import "strings"

// globs are options of bash that make a wildcard stand for more files.
type globs uint8

const (
	dotGlob  globs = 1 << iota // names that begin with a dot
	foldGlob                   // names in capital and small letters alike
	starGlob                   // `**`: directories at any depth
)

// globOption is what the shell option name changes.
func globOption(name string) globs {
	switch name {
	case "dotglob":
		return dotGlob
	case "nocaseglob":
		return foldGlob
	case "globstar":
		return starGlob
	}
	return 0
}

const (
	maxDeep     = 8  // directories that `**` stands for
	maxVariants = 64 // of one pattern
)

// variants are the patterns that together stand for the files which glob stands
// for with the options g.
func variants(glob string, g globs) []string {
	list := []string{glob}
	if len(glob) > maxPath {
		return list
	}
	if g&foldGlob != 0 {
		list[0] = folded(glob)
	}
	if g&starGlob != 0 {
		for i := 0; i < len(list) && len(list) < maxVariants; i++ {
			before, after, ok := cutSegment(list[i], "**")
			if !ok {
				continue
			}
			for n := range maxDeep {
				deep := strings.Repeat("*/", n)
				if after == "" {
					deep += "*"
				}
				list = append(list, before+deep+after)
			}
		}
	}
	if g&dotGlob != 0 {
		for i := 0; i < len(list) && len(list) < maxVariants; i++ {
			segments := strings.Split(list[i], "/")
			for j, s := range segments {
				if len(list) >= maxVariants {
					break
				}
				if s == "" || strings.IndexByte("*?[", s[0]) < 0 {
					continue
				}
				switch {
				case s[0] == '*':
					s = "." + s
				case s[0] == '?':
					s = "." + s[1:]
				default:
					_, rest, _ := strings.Cut(s, "]")
					s = "." + rest
				}
				changed := append(append(append([]string(nil), segments[:j]...), s), segments[j+1:]...)
				list = append(list, strings.Join(changed, "/"))
			}
		}
	}
	return list
}

// cutSegment cuts glob around the first segment that is seg, with its slash.
func cutSegment(glob, seg string) (before, after string, ok bool) {
	for at := 0; at <= len(glob); {
		end := strings.IndexByte(glob[at:], '/')
		last := end < 0
		if last {
			end = len(glob) - at
		}
		if glob[at:at+end] == seg {
			return glob[:at], strings.TrimPrefix(glob[at+end:], "/"), true
		}
		if last {
			break
		}
		at += end + 1
	}
	return glob, "", false
}

// folded is glob for letters of both cases. A bracket expression becomes `?`.
func folded(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		c := glob[i]
		switch {
		case c == '\\' && i+1 < len(glob):
			b.WriteByte(c)
			i++
			b.WriteByte(glob[i])
		case c == '[':
			end := strings.IndexByte(glob[i+1:], ']')
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteByte('?')
			i += end + 1
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			b.WriteString(string([]byte{'[', c | 0x20, c &^ 0x20, ']'}))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
