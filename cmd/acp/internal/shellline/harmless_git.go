package shellline

import (
	"slices"
	"strings"

	"github.com/goacp/acp/acphost"
)

// What the commands of git that show changes have in common.
const (
	diffLetters = "pusRwbaWz"
	diffValues  = "SG"
	diffJoined  = "UMCB"
	diffLong    = "--stat= --shortstat --numstat --name-only --name-status --patch --no-patch --unified= --word-diff= --word-diff-regex= --color= --no-color --color-words= --color-moved= --check --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --diff-filter= --find-renames= --find-copies= --no-renames --minimal --patience --histogram --diff-algorithm= --raw --summary --quiet --exit-code --no-ext-diff --no-textconv --relative= --text --binary --full-index --abbrev= --compact-summary --dirstat= --function-context --inter-hunk-context= --pickaxe-all --pickaxe-regex --patch-with-stat --no-prefix"
	logLetters  = diffLetters + "iEFPgmcrt0"
	logValues   = diffValues + "n"
	logLong     = diffLong + " --oneline --graph --no-graph --decorate= --no-decorate --all --branches= --tags= --remotes= --format= --pretty= --since= --until= --after= --before= --author= --committer= --grep= --all-match --invert-grep --follow --max-count= --skip= --merges --no-merges --first-parent --reverse --date= --left-right --cherry-pick --cherry-mark --abbrev-commit --no-abbrev-commit --no-walk= --topo-order --date-order --author-date-order --boundary --simplify-by-decoration --full-history --parents --children --not --source --relative-date --count --no-notes --notes= --ancestry-path= --reflog --walk-reflogs"
	logNext     = "--since --until --after --before --author --committer --grep --date --max-count --skip"
)

// gitReaders are the commands of git that only read. Operands of the kind r are revisions and files.
var gitReaders = []reader{
	{names: "status", letters: "sbvz", joined: "u", long: "--short --branch --porcelain= --long --verbose --untracked-files= --ignored= --show-stash --ahead-behind --no-ahead-behind --no-renames --renames --column= --no-column", operands: "r"},
	{names: "diff", letters: diffLetters, values: diffValues, joined: diffJoined, long: diffLong + " --cached --staged --merge-base", operands: "r"},
	{names: "log", letters: logLetters, values: logValues, joined: diffJoined, number: true, long: logLong, next: logNext, operands: "r"},
	{names: "show", letters: logLetters, values: logValues, joined: diffJoined, number: true, long: logLong, next: logNext, operands: "r"},
	{names: "whatchanged rev-list", letters: logLetters, values: logValues, joined: diffJoined, number: true, long: logLong + " --objects", next: logNext, operands: "r"},
	{names: "reflog", letters: logLetters, values: logValues, joined: diffJoined, number: true, long: logLong, next: logNext, operands: "r", words: func(w []word) bool {
		return !slices.ContainsFunc(w, func(w word) bool { return hasWhole("expire delete drop write", w.Text) })
	}},
	{names: "shortlog", letters: "sne", long: "--summary --numbered --email --all --since= --until= --no-merges --group=", next: "--since --until", operands: "r"},
	{names: "branch", letters: "arvl", long: "--all --remotes --list --verbose --show-current --contains= --no-contains= --merged= --no-merged= --sort= --format= --points-at= --color= --no-color --column= --no-column --abbrev= --ignore-case", next: "--sort --format", operands: "r", words: lists("--list --contains --merged --no-merged --no-contains --points-at")},
	{names: "tag", letters: "ln", long: "--list --sort= --format= --contains= --merged= --points-at= --column= --ignore-case", next: "--sort --format", operands: "r", words: lists("-l --list --contains --merged --points-at")},
	{names: "rev-parse", letters: "q", long: "--show-toplevel --show-prefix --show-cdup --abbrev-ref= --short= --verify --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --symbolic-full-name --symbolic --quiet --all --branches= --tags= --remotes= --revs-only --no-flags --show-superproject-working-tree --is-shallow-repository --show-object-format", operands: "r"},
	{names: "ls-files", letters: "cdomsiktzuv", values: "x", long: "--cached --deleted --modified --others --ignored --stage --unmerged --killed --directory --no-empty-directory --exclude-standard --exclude= --error-unmatch --full-name --abbrev= --eol --deduplicate", next: "--exclude", operands: "r"},
	{names: "ls-tree", letters: "drtlz", long: "--name-only --name-status --long --full-name --full-tree --abbrev= --format= --object-only", operands: "r"},
	{names: "blame annotate", letters: "lswtefnpbcMC", values: "L", long: "--date= --porcelain --line-porcelain --show-email --show-name --show-number --since= --root --show-stats --abbrev= --first-parent --reverse", operands: "r"},
	{names: "grep", letters: "nilLcvwhHEFGPIoqpWaz", values: "eABCm", number: true, long: "--cached --heading --break --name-only --count --files-with-matches --files-without-match --line-number --ignore-case --word-regexp --invert-match --extended-regexp --fixed-strings --perl-regexp --basic-regexp --show-function --function-context --and --or --not --all-match --color= --no-color --max-depth= --column --only-matching --quiet --text --context= --after-context= --before-context= --threads= --full-name --null", next: "--max-depth --context", operands: "tr", given: "-e"},
	{names: "describe", long: "--tags --all --always --long --abbrev= --match= --exclude= --exact-match --first-parent --contains --candidates= --dirty=", next: "--match --exclude", operands: "r"},
	{names: "remote", operands: "-"},
	{names: "config", long: "--get --get-all --global --local --system --show-origin --show-scope --bool --int --path --null --name-only --type=", operands: "t", words: func(w []word) bool {
		o := operandsOf(w[1:], "")
		if len(o) == 2 && o[0].Text == "get" {
			o = o[1:]
		}
		return len(o) == 1 && !o[0].Open && tellsNoKey()[strings.ToLower(o[0].Text)]
	}},
	{names: "stash", letters: diffLetters + "n", number: true, long: diffLong + " --oneline --format= --date=", operands: "t", least: 1, words: func(w []word) bool {
		o := operandsOf(w[1:], "")
		return len(o) > 0 && len(w) > 1 && (w[1].Text == "list" && len(o) == 1 || w[1].Text == "show" && len(o) <= 2)
	}},
	{names: "worktree", letters: "vz", long: "--porcelain --verbose", operands: "t", least: 1, words: func(w []word) bool { return w[1].Text == "list" && len(operandsOf(w[1:], "")) == 1 }},
	{names: "cat-file", letters: "tsep", operands: "r", least: 1, words: func(w []word) bool { return len(w) == 3 }},
	{names: "symbolic-ref", letters: "q", long: "--short --quiet", operands: "t-", least: 1},
	{names: "merge-base", letters: "a", long: "--all --is-ancestor --octopus --independent --fork-point", operands: "r"},
	{names: "show-ref", letters: "dsq", long: "--heads --tags --branches --head --dereference --hash= --abbrev= --verify --quiet", operands: "r"},
	{names: "for-each-ref", long: "--sort= --format= --count= --points-at= --merged= --no-merged= --contains= --no-contains= --ignore-case", next: "--sort --format --count", operands: "r"},
	{names: "name-rev", long: "--name-only --tags --all --always --refs=", operands: "r"},
	{names: "diff-tree", letters: diffLetters + "rtmc", values: diffValues, joined: diffJoined, long: diffLong + " --no-commit-id --root", operands: "r"},
	{names: "count-objects", letters: "vH", long: "--verbose --human-readable", operands: "-"},
	{names: "check-ignore", letters: "vnq", long: "--verbose --non-matching --quiet --no-index", operands: "r", least: 1},
	{names: "cherry", letters: "v", operands: "r"},
}

var gitReaderOf = byName(gitReaders, func(r *reader) string { return r.names })

// tellsNoKey are settings that hold no keys, unlike those with addresses.
var tellsNoKey = setOf("user.name user.email init.defaultbranch pull.rebase push.default fetch.prune core.autocrlf core.eol core.bare core.filemode core.ignorecase core.symlinks core.worktree core.excludesfile core.hookspath core.editor core.pager merge.conflictstyle diff.algorithm rebase.autostash commit.gpgsign tag.gpgsign user.signingkey")

// lists returns whether a command of git lists, and makes nothing: it has no operands, or an option with which
// operands are patterns. The values of sort and format are none.
func lists(patterns string) func(words []word) bool {
	return func(words []word) bool {
		operands := 0
		for i := 1; i < len(words); i++ {
			t := words[i].Text
			name, _ := splitOption(t)
			switch {
			case t == "--":
				operands += len(words) - i - 1
				i = len(words)
			case hasWhole("--sort --format", t):
				i++
			case hasWhole(patterns, name):
				return true
			case words[i].Open || t == "" || t[0] != '-':
				operands++
			}
		}
		return operands == 0
	}
}

// harmlessGit returns what a command of git reads, or nil if it is not known to do nothing else.
func harmlessGit(part *acphost.CommandPart, words []word) *acphost.CommandReads {
	in, i := "", 1
options:
	for ; i < len(words); i++ {
		switch t := words[i].Text; {
		case words[i].Open:
			return nil
		case hasWhole("--no-pager -P --no-optional-locks --literal-pathspecs --no-advice --no-replace-objects", t):
		case t == "-C" && in == "" && i+1 < len(words) && !words[i+1].Open && words[i+1].Text != "" && !strings.HasPrefix(words[i+1].Text, "~"):
			i++
			in = words[i].Text
		case t == "--version" && len(words) == i+1:
			return new(acphost.CommandReads)
		default:
			break options
		}
	}
	if i >= len(words) || len(part.In) > 1 || (in == "") != (len(part.In) == 0) {
		return nil
	}
	for _, o := range part.Options {
		if o.Word > i || words[o.Word].Text != "-C" && words[o.Word].Text != "config" { // these are looked at here
			return nil
		}
	}
	for _, w := range words[i:] { // what shows signatures runs a program that the settings name
		if strings.Contains(w.Text, "%G") || strings.Contains(w.Text, "signature") || w.Open && !isGlob(w) {
			return nil
		}
	}
	r := gitReaderOf()[words[i].Text]
	if r == nil || words[i].Open {
		return nil
	}
	out := r.reads(words[i:])
	if out == nil {
		return nil
	}
	if words[i].Text == "diff" && len(out.Files) > 1 { // outside of a repository it compares directories
		for k := range out.Files {
			out.Files[k].Deep, out.Files[k].Follow = true, true
		}
	}
	out.Settings, out.In = "git", in
	if in != "" {
		for k := range out.Files {
			out.Files[k].CommandWord = under(in, out.Files[k].CommandWord)
		}
		out.Files = append(out.Files, acphost.CommandFile{CommandWord: acphost.CommandWord{Text: in, Source: in}, Entry: true})
	}
	return out
}

// under returns a word for a file in a directory.
func under(dir string, w acphost.CommandWord) acphost.CommandWord {
	if strings.HasPrefix(w.Text, "/") {
		return w
	}
	dir = strings.TrimSuffix(dir, "/") + "/"
	w.Text = dir + w.Text
	if w.Pieces != nil {
		w.Pieces = append([]acphost.CommandPiece{{Text: dir}}, w.Pieces...)
	}
	return w
}

// addRevision adds the files that an operand of git may name: a revision, a path, or a path in a revision. It
// reports false if it may name others.
func addRevision(out *acphost.CommandReads, o operand) bool {
	t := o.Text
	file := acphost.CommandFile{CommandWord: o.CommandWord, Options: !o.after}
	if !o.Open && strings.HasPrefix(t, ":") {
		if t = strings.TrimPrefix(strings.TrimPrefix(t, ":!"), ":^"); strings.HasPrefix(t, ":") {
			return false
		}
		file.Text = t
	}
	if _, in, ok := strings.Cut(t, ":"); ok {
		if o.Open || in == "" || strings.Contains(in, ":") {
			return false
		}
		file.CommandWord = acphost.CommandWord{Text: in, Source: o.Source}
	}
	out.Files = append(out.Files, file)
	return true
}

// goReaders are the commands of go that only read, if they cannot fetch anything.
var goReaders = []reader{
	{names: "version", operands: "-"},
	{names: "env", single: true, long: "-json -changed", operands: "t", words: func(w []word) bool {
		return !slices.ContainsFunc(w[1:], func(w word) bool { return w.Open || strings.Contains(w.Text, "=") })
	}},
	{names: "list", single: true, long: "-m -json= -deps -test -e -find", next: "-f -tags", operands: "g"},
	{names: "doc", single: true, long: "-all -src -short -u -c -cmd", operands: "g"},
	{names: "help", operands: "t"},
}

var goReaderOf = byName(goReaders, func(r *reader) string { return r.names })

// harmlessGo returns what a command of go reads, or nil if it is not known to do nothing else.
func harmlessGo(part *acphost.CommandPart, words []word) *acphost.CommandReads {
	if len(words) < 2 || words[1].Open || len(part.Options) > 0 || len(part.In) > 0 {
		return nil
	}
	r := goReaderOf()[words[1].Text]
	if r == nil {
		return nil
	}
	out := r.reads(words[1:])
	if out != nil {
		out.Settings = "go"
	}
	return out
}
