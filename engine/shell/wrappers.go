package shell

import "strings"

// grammar is what must be known of a command that runs another one, to find
// where that one begins. The letters and names come from the manual pages named
// in the table. An option in neither list makes the rest a guess.
type grammar struct {
	flags    string // short options without a value
	values   string // short options with a value, glued or the next word
	glued    string // short options whose value can only be glued
	switches string // long options without a value, or with `=value` only
	longs    string // long options with a value, after `=` or the next word
	// program is the short option whose value is a program text, and its long
	// names.
	program, programLong string
	operands             int  // words between the options and the command
	assigns              bool // NAME=value words may come before the command
	joined               bool // the words are joined by spaces and read by a shell
	bare                 bool // without a command it does something else: no floor then
	// anywhere says that the program option may follow the operands.
	anywhere bool
}

// wrappers are the commands of FloorIndirection.
func wrapper(name string) (grammar, bool) {
	switch name {
	case "sudo", "sudo-rs": // sudo(8)
		return grammar{flags: "AbBEeHiKklNnPSsvV", values: "ugpcCDhrRtTUa", assigns: true,
			switches: "askpass background bell preserve-env edit set-home help login remove-timestamp reset-timestamp list no-update non-interactive preserve-groups stdin shell validate version",
			longs:    "user group prompt chdir chroot close-from host role type command-timeout other-user auth-type login-class"}, true
	case "doas": // doas(1)
		return grammar{flags: "Lns", values: "uCa"}, true
	case "env": // env(1), GNU coreutils and FreeBSD
		return grammar{flags: "i0v", values: "uCPaL", program: "S", programLong: "split-string", assigns: true,
			switches: "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
			longs:    "unset chdir argv0"}, true
	case "xargs": // xargs(1), GNU findutils and FreeBSD
		return grammar{flags: "0oprtx", values: "adEILnPsJRS", glued: "eil",
			switches: "null interactive no-run-if-empty verbose exit open-tty show-limits eof replace max-lines",
			longs:    "arg-file delimiter max-args max-procs max-chars process-slot-var"}, true
	case "time", "gtime": // time(1); the reserved word is read elsewhere
		return grammar{flags: "aplqvVh", values: "fo", switches: "append portability quiet verbose", longs: "format output"}, true
	case "nohup": // nohup(1)
		return grammar{}, true
	case "timeout", "gtimeout": // timeout(1)
		return grammar{flags: "fpv", values: "ks", switches: "preserve-status foreground verbose", longs: "kill-after signal", operands: 1}, true
	case "nice", "gnice": // nice(1)
		return grammar{flags: "0123456789", values: "n", longs: "adjustment"}, true
	case "ionice": // ionice(1)
		return grammar{flags: "t", values: "cnpPu", switches: "ignore", longs: "class classdata pid pgid uid"}, true
	case "parallel", "sem": // parallel(1), GNU and moreutils
		return grammar{flags: "0kmqtruvVXxhK", values: "aCdDEIJjLlnNPRsSW", joined: true,
			switches: "keep-order bar progress dry-run null verbose will-cite halt-on-error eta group ungroup line-buffer pipe xargs no-run-if-empty quote",
			longs:    "jobs arg-file colsep delimiter max-args max-procs max-replace-args joblog results retries timeout delay halt workdir tmpdir load memfree tagstring sshlogin"}, true
	case "rust-parallel": // its README
		return grammar{flags: "0dkprsxt", values: "ijtT", switches: "dry-run exit-on-error null-separator regex-none shell disable-path-cache progress-bar",
			longs: "input-file jobs timeout-seconds regex shell-path shell-argument channel-capacity discard-output"}, true
	case "rush": // its README
		return grammar{flags: "vekhVqC", values: "jdDnriTtcsJ", joined: true,
			switches: "verbose continue dry-run escape exit-on-error help keep-order immediate-output version",
			longs:    "jobs delimiter field-delimiter nrecords records-join-sep retries retry-interval timeout trim succ-cmd-file assign"}, true
	case "setsid": // setsid(1)
		return grammar{flags: "cfw", switches: "ctty fork wait"}, true
	case "stdbuf", "gstdbuf": // stdbuf(1)
		return grammar{values: "ioe", longs: "input output error"}, true
	case "watch": // watch(1)
		return grammar{flags: "bcCdegprtwx", values: "nqs", joined: true,
			switches: "beep color no-color differences errexit chgexit precise no-rerun no-title no-wrap exec",
			longs:    "interval equexit shotsdir"}, true
	case "flock": // flock(1)
		return grammar{flags: "snxeuoFv", values: "wE", program: "c", programLong: "command", operands: 1, anywhere: true,
			switches: "shared nonblock nb exclusive unlock close no-fork verbose fcntl", longs: "timeout wait conflict-exit-code"}, true
	case "chroot": // chroot(8), GNU and FreeBSD
		return grammar{flags: "n", values: "ugG", switches: "skip-chdir", longs: "userspec groups", operands: 1}, true
	case "strace", "ltrace": // strace(1)
		return grammar{flags: "cCdDfFhikqrtTvVwxyYzZn", values: "abeEIoOpPsSuUXA",
			switches: "follow-forks summary summary-only quiet seccomp-bpf decode-fds debug",
			longs:    "output trace attach string-limit columns env user detach-on interruptible status"}, true
	case "taskset": // taskset(1)
		return grammar{flags: "acp", switches: "all-tasks cpu-list pid", operands: 1}, true
	case "unshare": // unshare(1)
		return grammar{flags: "imnpuUCTrcf", values: "RwSGl",
			switches: "ipc mount net pid uts user cgroup time fork map-root-user map-current-user kill-child mount-proc mount-binfmt keep-caps forward-signals",
			longs:    "root wd setuid setgid propagation setgroups map-user map-group map-users map-groups boottime monotonic load-interp"}, true
	case "setpriv": // setpriv(1)
		return grammar{flags: "dh", switches: "clear-groups keep-groups init-groups no-new-privs nnp reset-env dump",
			longs: "reuid regid ruid euid rgid egid groups inh-caps ambient-caps bounding-set securebits pdeathsig ptracer selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter"}, true
	case "runuser": // runuser(1)
		return grammar{flags: "lmpfPT", values: "ugGsw", program: "c", programLong: "command session-command", anywhere: true,
			switches: "login preserve-environment fast pty no-pty", longs: "user group supp-group shell whitelist-environment"}, true
	case "su": // su(1)
		return grammar{flags: "lmpfPT", values: "gGswC", program: "c", programLong: "command session-command", operands: 1, anywhere: true,
			switches: "login preserve-environment fast pty no-pty", longs: "group supp-group shell whitelist-environment"}, true
	case "pkexec": // pkexec(1)
		return grammar{switches: "disable-internal-agent keep-cwd", longs: "user"}, true
	case "systemd-run", "run0": // systemd-run(1)
		return grammar{flags: "GPdqrSt", values: "pHMEuDg", assigns: true,
			switches: "scope user system remain-after-exit no-block wait pty pipe quiet collect same-dir shell slice-inherit no-ask-password expand-environment ignore-failure send-sighup",
			longs:    "unit slice property description working-directory uid gid nice setenv service-type machine host on-active on-boot on-startup on-unit-active on-unit-inactive on-calendar path-property socket-property timer-property background"}, true
	case "script": // script(1), util-linux and FreeBSD
		return grammar{flags: "aefqkrd", values: "EoTIOBm", glued: "t", program: "c", programLong: "command", operands: 1, anywhere: true,
			switches: "append return flush force quiet", longs: "echo output-limit log-timing log-in log-out log-io logging-format"}, true

	// Not in the first list, but of the same kind: they run their operands.
	case "chrt": // chrt(1)
		return grammar{flags: "abfdiormpv", values: "TPD", switches: "batch deadline fifo idle other rr reset-on-fork all-tasks max pid verbose",
			longs: "sched-runtime sched-period sched-deadline", operands: 1, bare: true}, true
	case "numactl": // numactl(8)
		return grammar{flags: "sHla", values: "CNimpPo", bare: true, longs: "cpunodebind physcpubind interleave membind preferred", switches: "localalloc all balancing"}, true
	case "nsenter": // nsenter(1)
		return grammar{flags: "aFeZ", values: "tSGW", glued: "muinpUCTrw", bare: true, switches: "all no-fork mount uts ipc net pid user cgroup time root wd preserve-credentials", longs: "target setuid setgid"}, true
	case "prlimit": // prlimit(1)
		return grammar{glued: "cdefilmnqrstuvxy", values: "po", bare: true, longs: "pid output"}, true
	case "setarch", "linux32", "linux64", "i386", "x86_64": // setarch(8)
		return grammar{flags: "BFILRSTXZ3v", values: "p", bare: true, switches: "addr-no-randomize 32bit 3gb uname-2.6 verbose"}, true
	case "choom": // choom(1)
		return grammar{values: "np", bare: true, longs: "adjust pid"}, true
	case "ld.so", "ld-linux.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "ld-linux-armhf.so.3", "ld-musl-x86_64.so.1", "ld-musl-aarch64.so.1": // ld.so(8)
		return grammar{bare: true, switches: "inhibit-cache list verify list-tunables list-diagnostics", longs: "library-path preload audit argv0 inhibit-rpath glibc-hwcaps-prepend glibc-hwcaps-mask"}, true
	case "ssh-agent": // ssh-agent(1)
		return grammar{flags: "cDdks", values: "aEOPt", bare: true}, true
	case "fakeroot": // fakeroot(1)
		return grammar{flags: "uhv", values: "lsib", bare: true, switches: "unknown-is-real", longs: "lib faked"}, true
	case "dbus-run-session": // dbus-run-session(1)
		return grammar{bare: true, longs: "config-file dbus-daemon"}, true
	case "xvfb-run": // xvfb-run(1)
		return grammar{flags: "al", values: "efnpsw", bare: true, switches: "auto-servernum listen-tcp", longs: "error-file auth-file server-num xauth-protocol server-args wait"}, true
	case "catchsegv", "eatmydata", "torsocks", "torify", "tsocks", "chronic", "unbuffer", "softlimit", "tini", "dumb-init":
		return grammar{flags: "p", bare: true}, true
	case "gosu", "su-exec", "faketime", "setuidgid", "s6-setuidgid", "runcon", "envdir", "uclampset": // USER COMMAND and the like
		return grammar{operands: 1, bare: true}, true
	case "sg": // sg(1)
		return grammar{program: "c", operands: 1, joined: true, anywhere: true, bare: true}, true
	case "proxychains", "proxychains4": // its README
		return grammar{flags: "q", values: "f", bare: true}, true
	case "caffeinate": // caffeinate(8)
		return grammar{flags: "disum", values: "tw", bare: true}, true
	case "sandbox-exec": // sandbox-exec(1)
		return grammar{values: "fnpD", bare: true}, true
	case "firejail", "bwrap", "proot", "systemd-inhibit", "systemd-cat", "cgexec", "valgrind", "entr", "ifne", "start-stop-daemon", "daemonize", "cpulimit", "sshpass", "nocache":
		return grammar{bare: true, flags: "q"}, true // the rest is a guess
	}
	return grammar{}, false
}

// isShell reports whether a command of that name reads programs.
func isShell(name string) bool {
	switch name {
	case "bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "mksh", "lksh", "pdksh", "oksh", "rbash", "rksh", "yash", "posh", "csh", "tcsh", "ksh93", "hush":
		return true
	}
	return false
}

// switches reports whether w is short options with one of letters among them, or
// in the value of one.
func switches(w, letters string) bool {
	return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, letters)
}

// word reports whether name is one of the space-separated words of list.
func word(list, name string) bool {
	for list != "" {
		var w string
		w, list, _ = strings.Cut(list, " ")
		if w == name {
			return true
		}
	}
	return false
}

// opened is where a wrapper's own words end.
type opened struct {
	command int   // index of the first word of the inner command; 0: none
	end     int   // index after its last word
	own     []int // indices of the wrapper's own operands
	program int   // index of the word that holds a program text; 0: none
	skip    int   // bytes of that word before the text
	guess   bool  // an option is not known, so command is where it was met
	exec    bool  // watch -x: not joined after all
}

// open finds the inner command in words, of which the first is the wrapper.
func (g *grammar) open(words []string) opened {
	o := opened{end: len(words)}
	i := 1
	if !g.options(words, &i, &o) {
		return o
	}
	for n := 0; n < g.operands && i < len(words); n++ {
		o.own = append(o.own, i)
		i++
		if g.anywhere {
			at := i
			if !g.options(words, &at, &o) || o.program > 0 {
				return o
			}
			i = at
		}
	}
	if g.anywhere && g.operands == 0 && i < len(words) {
		// A user may come before the program.
		at, u := i+1, opened{end: len(words)}
		if g.options(words, &at, &u); u.program > 0 {
			u.own = append(o.own, i)
			return u
		}
	}
	for g.assigns && i < len(words) && (strings.Contains(words[i], "=") || words[i] == "--") {
		i++
	}
	if i < len(words) {
		o.command = i
	}
	for j := i; j < len(words) && g.joined; j++ {
		if strings.HasPrefix(words[j], ":::") {
			o.end = j
			break
		}
	}
	if o.command >= o.end {
		o.command = 0
	}
	return o
}

// options goes over the options at words[*i]. It returns false if there is
// nothing more to be found.
func (g *grammar) options(words []string, i *int, o *opened) bool {
	for ; *i < len(words); *i++ {
		w := words[*i]
		switch {
		case w == "--":
			*i++
			return true
		case w == "-":
			if g.assigns || g.program == "c" {
				continue // env's and su's own
			}
			return true
		case strings.HasPrefix(w, "--"):
			name, _, inline := strings.Cut(w[2:], "=")
			typed := len(name)
			name = g.full(name)
			switch {
			case word(g.programLong, name):
				if inline {
					o.program, o.skip = *i, typed+3
				} else if *i+1 < len(words) {
					o.program = *i + 1
				}
				return false
			case word(g.longs, name):
				if !inline {
					*i++
					if *i < len(words) {
						o.own = append(o.own, *i)
					}
				} else {
					o.own = append(o.own, *i)
				}
			case word(g.switches, name), name == "help", name == "version":
			default:
				return g.guess(*i, words, o)
			}
		case strings.HasPrefix(w, "-"):
			for j := 1; j < len(w); j++ {
				c := w[j : j+1]
				switch {
				case c == g.program && c != "":
					if j+1 < len(w) {
						o.program, o.skip = *i, j+1
					} else if *i+1 < len(words) {
						o.program = *i + 1
					}
					return false
				case strings.Contains(g.values, c):
					if j+1 == len(w) {
						*i++
						if *i < len(words) {
							o.own = append(o.own, *i)
						}
					} else {
						o.own = append(o.own, *i)
					}
					j = len(w)
				case strings.Contains(g.glued, c):
					j = len(w)
				case strings.Contains(g.flags, c):
					o.exec = o.exec || c == "x"
				default:
					return g.guess(*i, words, o)
				}
			}
		default:
			return true
		}
	}
	return true
}

// full is the long option that name is the beginning of, as getopt_long(3) takes
// it; name itself if there is none or more than one.
func (g *grammar) full(name string) string {
	if name == "" || word(g.longs, name) || word(g.switches, name) {
		return name
	}
	found := ""
	for _, list := range [...]string{g.longs, g.switches, g.programLong} {
		for list != "" {
			var w string
			if w, list, _ = strings.Cut(list, " "); !strings.HasPrefix(w, name) {
				continue
			}
			if w == name || found != "" && found != w {
				return name
			}
			found = w
		}
	}
	if found == "" {
		return name
	}
	return found
}

func (g *grammar) guess(at int, words []string, o *opened) bool {
	o.guess = true
	if at+1 < len(words) {
		o.command = at + 1
	}
	return false
}

func identifier(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// gitGlobals are git's options before its sub-command, from git(1): the ones
// with a value in the next word, and the ones without.
const (
	gitValues = "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source --list-cmds"
	gitFlags  = "-p --paginate -P --no-pager --no-replace-objects --no-lazy-fetch --no-optional-locks --no-advice --bare --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --html-path --man-path --info-path"
)

// plainGit is words without git's global options; ok is false if there are none.
func plainGit(words []string) (out []string, ok bool) {
	i := 1
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		w := words[i]
		name, _, inline := strings.Cut(w, "=")
		switch {
		case strings.HasPrefix(w, "--") && inline && word(gitValues, name):
		case w == "--exec-path":
		case word(gitValues, w):
			i++
		case word(gitFlags, w):
		case strings.HasPrefix(w, "-c") || strings.HasPrefix(w, "-C"):
		default:
			return nil, false
		}
		i++
	}
	if i == 1 || i > len(words) {
		return nil, false
	}
	return append([]string{words[0]}, words[i:]...), true
}

// hijacks reports whether setting name to value changes which program a
// command runs or what it loads, so that a rule for the command does not cover
// it. The names are those of bash(1), ld.so(8), git(1) and the loaders of
// common interpreters.
func hijacks(name, value string) bool {
	switch name {
	case "PATH", "IFS", "BASH_ENV", "ENV", "CDPATH", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE",
		"BASH_ALIASES", "BASH_CMDS", "TAR_OPTIONS",
		"SSH_ASKPASS", "SUDO_ASKPASS", "SUDO_EDITOR", "LESSOPEN", "LESSCLOSE",
		"PERL5OPT", "PERL5DB", "RUBYOPT", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONBREAKPOINT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"RUSTC", "GCC_EXEC_PREFIX", "COMPILER_PATH", "NPM_CONFIG_SCRIPT_SHELL", "npm_config_script_shell":
		return true
	case "RSYNC_RSH":
		return value != "ssh"
	case "RUSTC_WRAPPER":
		return value != "" && value != "sccache"
	case "MAKEFLAGS", "GNUMAKEFLAGS":
		return strings.ContainsAny(value, "$`") || strings.Contains(value, "eval")
	case "NODE_OPTIONS":
		return strings.ContainsAny(value, "$`") || strings.Contains(value, "-r") || strings.Contains(value, "--require") ||
			strings.Contains(value, "--import") || strings.Contains(value, "loader")
	case "PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "BROWSER", "GH_PAGER":
		return !word(" cat less more true : vi vim nano emacs false", value) && value != "" && (name != "BROWSER" || value != "none")
	case "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR":
		return true
	}
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH_FUNC_") ||
		strings.HasPrefix(name, "GIT_CONFIG") || strings.HasPrefix(name, "GIT_") && strings.HasSuffix(name, "_COMMAND")
}
