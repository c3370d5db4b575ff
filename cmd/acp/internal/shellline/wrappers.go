package shellline

import (
	"cmp"
	"strings"

	"github.com/goacp/acp/acphost"
)

// A wrapper is a program that runs another one, which is on its line.
type wrapper struct {
	names  string
	source string // where its options are documented
	flags  string // options without a value
	values string // options with a value, in the next word if it is not joined
	heavy  string // those of them that do more than the command it runs
	query  string // options with which it runs nothing
	moves  string // options that make the program work elsewhere

	skip    int    // words before the program
	root    bool   // the last of them is the directory in which it works
	assigns bool   // NAME=value may come before the program
	number  bool   // -10 is an option
	appends string // what stands for the words it adds
	joined  bool   // it runs its words as a line
	free    bool   // it gives the program no rights, no other files and no other host
}

// The programs that run others. What is not in their lists of options is uncertain.
var wrappers = []wrapper{
	{names: "command builtin", source: "bash(1), Shell Builtin Commands", flags: "-p", query: "-v -V", free: true},
	{names: "exec", source: "bash(1), Shell Builtin Commands", flags: "-c -l", values: "-a", free: true},
	{names: "and or not noglob nocorrect", source: "fish and zsh: words before a command", free: true},
	{names: "repeat", source: "zshmisc(1), Complex Commands", skip: 1, free: true},
	{names: "nohup", source: "https://www.gnu.org/software/coreutils/manual/html_node/nohup-invocation.html", free: true},
	{names: "time gtime", source: "time(1)", flags: "-p -v -q -a --portability --verbose --quiet --append", values: "-f -o --format --output", heavy: "-o --output", free: true},
	{names: "timeout gtimeout", source: "https://www.gnu.org/software/coreutils/manual/html_node/timeout-invocation.html",
		flags: "-f -p -v --foreground --preserve-status --verbose", values: "-k -s --kill-after --signal", skip: 1, free: true},
	{names: "nice gnice", source: "https://www.gnu.org/software/coreutils/manual/html_node/nice-invocation.html", values: "-n --adjustment", number: true, free: true},
	{names: "ionice", source: "ionice(1)", flags: "-t --ignore", values: "-c -n --class --classdata", free: true},
	{names: "setsid", source: "setsid(1)", flags: "-c -f -w --ctty --fork --wait", free: true},
	{names: "stdbuf gstdbuf", source: "https://www.gnu.org/software/coreutils/manual/html_node/stdbuf-invocation.html", values: "-i -o -e --input --output --error", free: true},
	{names: "unbuffer", source: "unbuffer(1)", flags: "-p", free: true},
	{names: "caffeinate", source: "caffeinate(8)", flags: "-d -i -m -s -u", values: "-t -w", free: true},
	{names: "env genv", source: "https://www.gnu.org/software/coreutils/manual/html_node/env-invocation.html",
		flags: "-i -0 -v - --ignore-environment --null --debug", values: "-u -C --unset --chdir", heavy: "-C --chdir", moves: "-C --chdir", assigns: true, free: true},
	{names: "busybox toybox", source: "https://busybox.net/downloads/BusyBox.html", free: true},
	{names: "watch", source: "watch(1)", flags: "-b -c -C -d -e -g -p -r -t -w --beep --color --no-color --differences --errexit --chgexit --precise --no-rerun --no-title --no-wrap",
		values: "-n -q -s --interval --equexit --shotsdir", heavy: "-s --shotsdir", joined: true, free: true},
	{names: "xargs gxargs", source: "https://www.gnu.org/software/findutils/manual/html_node/find_html/xargs-options.html",
		flags:  "-0 -p -r -t -x -o -e -i -l --null --interactive --no-run-if-empty --verbose --exit --open-tty --eof --replace --max-lines",
		values: "-a -d -E -I -J -L -n -P -R -s --arg-file --delimiter --max-args --max-procs --max-chars --process-slot-var", appends: "{}", free: true},
	{names: "sudo", source: "https://www.sudo.ws/docs/man/sudo.man/", query: "-l -ll -V -v --list --validate", flags: "-A -b -B -E -H -i -K -k -N -n -P -S -s --askpass --background --bell --preserve-env --set-home --login --non-interactive --preserve-groups --stdin --shell --reset-timestamp",
		values: "-C -D -g -h -p -R -r -T -t -U -u --close-from --chdir --group --host --prompt --chroot --role --command-timeout --type --other-user --user", moves: "-D --chdir -R --chroot", assigns: true},
	{names: "doas", source: "https://man.openbsd.org/doas", flags: "-n -s -L", values: "-C -u -a"},
	{names: "pkexec", source: "pkexec(1)", flags: "--disable-internal-agent --keep-cwd", values: "--user"},
	{names: "gosu su-exec", source: "https://github.com/tianon/gosu", skip: 1},
	{names: "chroot", source: "https://www.gnu.org/software/coreutils/manual/html_node/chroot-invocation.html", flags: "--skip-chdir", values: "--groups --userspec", skip: 1, root: true},
	{names: "flock", source: "flock(1)", flags: "-s -x -n -u -o -F --shared --exclusive --nonblock --close --no-fork --verbose", values: "-w -E --timeout --conflict-exit-code", skip: 1},
	{names: "strace ltrace", source: "strace(1)", flags: "-f -ff -c -C -i -k -q -r -t -T -v -x -y", values: "-e -o -p -s -u -E -P --env", heavy: "-o -p -u -E --env"},
	{names: "tini dumb-init catatonit", source: "https://github.com/krallin/tini", flags: "-s -g -v", values: "-p -e"},
	{names: "chronic", source: "chronic(1), moreutils", flags: "-v -e", free: true},
}

var wrapperOf = byName(wrappers, func(w *wrapper) string { return w.names })

// wrapper examines a program that runs another one.
func (s *scan) wrapper(w *wrapper, n int, words []word) {
	at, sets, heavy, ok := w.program(words)
	part := s.part(n)
	part.Options = append(part.Options, heavy...)
	switch {
	case !ok:
		s.unsure("what " + shown(words[0]) + " runs is not certain")
		part.Opaque = true
		return
	case at < 0:
		return
	}
	part.Wrapper = w.free && isStandard(words[0].Text) && len(heavy) == 0
	inner := words[at:]
	if w.appends != "" {
		if s.feed.to > s.feed.from {
			if s.feeds == nil {
				s.feeds = map[int]span{}
			}
			s.feeds[n] = s.feed
		}
		inner = append(replaced(w, words[1:at], inner), word{found("", "", w.appends), true, false})
	}
	in := s.in
	s.enter(w.at(words, at))
	defer func() { s.in = in }()
	if w.joined {
		dir := s.dir
		s.line(n, inner)
		s.dir = dir
		return
	}
	s.inside(n, at, sets, inner)
}

// program returns which of the words is the program that is run, or less than 0 if none is; the
// variables that are set for it; and the options that do more. ok is false if that is uncertain.
func (w *wrapper) program(words []word) (at int, sets []string, heavy []acphost.CommandOption, ok bool) {
	i := 1
	for i < len(words) {
		t := words[i].Text
		if words[i].Open && words[i].mayBeOption() {
			return 0, sets, heavy, false
		}
		if w.assigns && isAssignment(t) {
			if words[i].Open {
				return 0, sets, heavy, false
			}
			sets = append(sets, t)
			i++
			continue
		}
		if t == "--" {
			i++
			break
		}
		if t == "" || t[0] != '-' || t == "-" && !has(w.flags, "-") {
			break
		}
		if t == "--help" || t == "--version" || has(w.query, t) {
			return -1, sets, heavy, true
		}
		n, which := w.option(t)
		if n == 0 || words[i].Open {
			return 0, sets, heavy, false
		}
		if which != "" {
			heavy = append(heavy, acphost.CommandOption{Word: i, Name: which, Does: "does more than to run a command"})
		}
		i += n
	}
	for range w.skip {
		if i < len(words) && words[i].split {
			return 0, sets, heavy, false
		}
		i++
	}
	if i >= len(words) {
		return -1, sets, heavy, true
	}
	return i, sets, heavy, true
}

// option returns how many words an option takes, 0 if it is unknown, and how it is written if it is
// heavy.
func (w *wrapper) option(t string) (n int, heavy string) {
	if strings.HasPrefix(t, "--") {
		name, joined := splitOption(t)
		if has(w.heavy, name) {
			heavy = name
		}
		switch {
		case has(w.values, name) && !joined:
			return 2, heavy
		case has(w.values, name) || has(w.flags, name):
			return 1, heavy
		}
		return 0, ""
	}
	if has(w.flags, t) {
		return 1, ""
	}
	if w.number && strings.Trim(t[1:], "0123456789") == "" {
		return 1, ""
	}
	for j := 1; j < len(t); j++ {
		o := "-" + t[j:j+1]
		if has(w.heavy, o) {
			heavy = t[:j+1]
		}
		switch {
		case has(w.values, o) && j+1 == len(t):
			return 2, heavy
		case has(w.values, o):
			return 1, heavy
		case !has(w.flags, o):
			return 0, ""
		}
	}
	return 1, heavy
}

// isAssignment reports whether a word is NAME=value.
func isAssignment(t string) bool {
	name, _, ok := strings.Cut(t, "=")
	if !ok || name == "" || '0' <= name[0] && name[0] <= '9' {
		return false
	}
	return strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// at returns the directories in which a wrapper runs a program, which is word at.
func (w *wrapper) at(words []word, at int) (in []acphost.CommandWord) {
	if w.root {
		return []acphost.CommandWord{words[at-1].CommandWord}
	}
	for i := 1; i < at; i++ {
		t := words[i].Text
		long, _ := splitOption(t)
		switch {
		case len(t) < 2 || t[0] != '-':
		case t[1] == '-' && has(w.moves, long):
			in = append(in, valueOf(words, i, long))
		case t[1] != '-':
			for j := 1; j < len(t); j++ {
				if has(w.moves, "-"+t[j:j+1]) {
					in = append(in, valueOf(words, i, t[:j+1]))
				}
				if has(w.values, "-"+t[j:j+1]) {
					break
				}
			}
		}
	}
	return in
}

// replaced returns the words of a command of xargs, in which the text that its options name stands
// for its input.
func replaced(w *wrapper, options, words []word) []word {
	var texts []string
	for i := 0; i < len(options); i++ {
		t := options[i].Text
		if strings.HasPrefix(t, "--") {
			if name, text, _ := strings.Cut(t, "="); len(name) > 2 && strings.HasPrefix("--replace", name) {
				texts = append(texts, cmp.Or(text, "{}"))
			}
			continue
		}
		for j := 1; j < len(t) && t[0] == '-'; j++ {
			rest, o := t[j+1:], "-"+t[j:j+1]
			valued := has(w.values, o)
			if valued && rest == "" && i+1 < len(options) {
				i++
				rest = options[i].Text
			}
			if strings.Contains("iIJ", t[j:j+1]) {
				texts = append(texts, cmp.Or(rest, "{}"))
				valued = true
			}
			if valued {
				break
			}
		}
	}
	out := append([]word(nil), words...)
	for i := range out {
		for _, text := range texts {
			if before, after, ok := strings.Cut(out[i].Text, text); ok {
				if out[i].Open {
					after = "" // like anything else
				}
				out[i].CommandWord = found(before, after, out[i].Source)
			}
		}
	}
	return out
}
