package mcp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// Values returns servers in the form of settings, as if they were written there. It leaves out what
// is not shown of settings: the values of variables and headers, and what may be secret in an
// address.
func Values(servers []Server) []config.Value {
	var out []config.Value
	for _, s := range servers {
		origin := s.Source
		if s.Line > 0 {
			origin = fmt.Sprintf("%s:%d", s.Source, s.Line)
		}
		add := func(value any, key ...string) {
			out = append(out, config.Value{Key: config.KeyOf(append([]string{"mcp", s.Name}, key...)...), Value: value, Origin: origin})
		}
		if s.Command != "" {
			add(s.Command, "command")
		}
		if len(s.Args) > 0 {
			add(s.Args, "args")
		}
		for _, k := range slices.Sorted(maps.Keys(s.Env)) {
			add(config.Masked, "env", k)
		}
		if s.Type != "" {
			add(s.Type, "type")
		}
		if s.URL != "" {
			add(config.MaskURL(s.URL), "url")
		}
		for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
			add(config.Masked, "headers", k)
		}
	}
	return out
}
