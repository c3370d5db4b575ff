package conformance

import (
	"fmt"
	"strings"

	"github.com/goacp/acp/internal/pattern"
)

// unfit says why a rule does not apply to the peer, or "".
func (d *dialect) unfit(r *Rule) string {
	if d.init == nil {
		return "" // what the peer has is not known: let the scenario try
	}
	for _, need := range r.Needs {
		if p, mine := forVersion(need, d.version); mine && !has(d.init, r.Side, d.version, p) {
			return fmt.Sprintf("the %s does not offer %s", r.Side, p)
		}
	}
	for _, lack := range r.Lacks {
		if p, mine := forVersion(lack, d.version); mine && has(d.init, r.Side, d.version, p) {
			return fmt.Sprintf("the %s offers %s", r.Side, p)
		}
	}
	return ""
}

// forVersion takes the version off what is needed, which may be about one only.
func forVersion(need string, version int) (path string, mine bool) {
	first, rest, ok := strings.Cut(need, " ")
	if !ok {
		return need, true
	}
	return rest, first == fmt.Sprintf("v%d", version)
}

// has reports whether a peer offers a capability, a path in the words of version
// 2 or of the version that is spoken.
func has(init *pattern.Value, side Side, version int, p string) bool {
	if strings.HasPrefix(p, "authMethods") {
		return offered(at(init, p))
	}
	key := "capabilities"
	if version == 1 {
		key = string(side) + "Capabilities"
	}
	caps := init.Get(key)
	if offered(at(caps, p)) {
		return true
	}
	return version == 1 && offered(at(caps, inVersion1(p)))
}

// inVersion1 returns the path of a capability in version 1.
func inVersion1(p string) string {
	for _, r := range [][2]string{
		{"session.prompt.", "promptCapabilities."},
		{"session.mcp.", "mcpCapabilities."},
		{"session.load", "loadSession"},
		{"session.", "sessionCapabilities."},
	} {
		if rest, ok := strings.CutPrefix(p, r[0]); ok && (strings.HasSuffix(r[0], ".") || rest == "") {
			return r[1] + rest
		}
	}
	return p
}

func at(v *pattern.Value, p string) *pattern.Value {
	for key := range strings.SplitSeq(p, ".") {
		v = v.Get(key)
	}
	return v
}

// offered reports whether a capability is there: anything but null, false and an
// empty list.
func offered(v *pattern.Value) bool {
	return v != nil && v.Text != "null" && v.Text != "false" && (v.Kind != pattern.Array || len(v.Elems) > 0)
}
