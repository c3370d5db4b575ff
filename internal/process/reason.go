package process

import (
	"regexp"
	"strings"
	"sync"
)

// failure matches what programs write when they fail: after it there may be a whole stack, and the
// version of the interpreter.
var failure = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(error|exception|fatal|panic)\b[^:]{0,80}: .`)
})

// IsReason reports whether a line of standard error looks like why a program has failed.
func IsReason(line string) bool { return failure().MatchString(line) }

// Reason returns the line of standard error that says why a program has failed: the last that
// looks like it, else the last line there is, or "".
func Reason(stderr string) string {
	last := ""
	for end := strings.TrimSpace(stderr); end != ""; {
		i := strings.LastIndexByte(end, '\n') + 1
		line := strings.TrimSpace(end[i:])
		if IsReason(line) {
			return line
		}
		if last == "" {
			last = line
		}
		end = strings.TrimSpace(end[:i])
	}
	return last
}
