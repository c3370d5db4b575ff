package shellline

import (
	"slices"
	"testing"

	"github.com/goacp/acp/acphost"
)

// TestBashLines: what only Bash reads as it is meant hides no command, since a line may be run
// by Bash or by another shell: a command that either would run is a part, or the line is unsure.
func TestBashLines(t *testing.T) {
	for _, line := range []string{
		`[[ -e x ]] && rm x`, `[[ $(rm x) ]]`, `[[ -n x || $(rm x) ]]`, `if [[ a =~ b ]]; then rm x; fi`,
		`/bin/{rm,-rf} x`, `{rm,x}`, `rm {1..3}`, `for i in {1..3}; do rm $i; done`, `for ((i=0;i<3;i++)); do rm x; done`,
		`source env.sh && rm x`, `cat <(rm x)`, `ls > >(rm x)`, `ls |& rm x`, `ls &> f; rm x`, `coproc rm x`,
		`function f { rm x; }; f`, `f() { rm x; }; f`, `time rm x`, `a=(1 2); rm x`, `a=($(rm x))`, `echo $((1 + $(rm x)))`,
		`$'\x72m' x`, `cat <<< "$(rm x)"`, `echo "${a[$(rm x)]}"`, `set -o pipefail; rm x | cat`, `shopt -s globstar; rm **/x`,
		`! rm x`, `select i in a; do rm x; done`, `case x in x) rm x;; esac`, `let "a=$(rm x)"`, `(( a = $(rm x) ))`,
		`declare a=$(rm x)`, `exec rm x`, `command rm x`, `builtin eval rm x`, `trap 'rm x' EXIT`, `PROMPT_COMMAND='rm x'`, `BASH_ENV=rm bash x`,
	} {
		parsed := Parser{}.ParseCommand(line)
		removes := func(p acphost.CommandPart) bool {
			return len(p.Words) > 0 && (base(p.Words[0].Text) == "rm" || p.Words[0].Open) || p.Opaque || len(p.Runs) > 0
		}
		if parsed.Unsure == "" && !slices.ContainsFunc(parsed.Parts, removes) {
			t.Errorf("%s: rm is not seen, and the line is not unsure: %+v", line, parsed)
		}
	}
	// What is the same to all shells is sure, whichever runs it.
	for _, line := range []string{`cd a && make test 2>&1 | tail -20`, `ls *.go`, `git status`} {
		if p := (Parser{}).ParseCommand(line); p.Unsure != "" {
			t.Errorf("%s: %s", line, p.Unsure)
		}
	}
}
