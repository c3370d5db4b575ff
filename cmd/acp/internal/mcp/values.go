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
func Values(servers []Server) []config.Value { return values(servers, true) }

// Written returns servers in the form of settings, with everything that their file has.
func Written(servers []Server) []config.Value { return values(servers, false) }

func values(servers []Server, masked bool) []config.Value {
	shown := func(s string) string {
		if masked {
			return config.Masked
		}
		return s
	}
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
			add(shown(s.Env[k]), "env", k)
		}
		if s.Type != "" {
			add(s.Type, "type")
		}
		if s.URL != "" {
			address := s.URL
			if masked {
				address = config.MaskURL(address)
			}
			add(address, "url")
		}
		for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
			add(shown(s.Headers[k]), "headers", k)
		}
	}
	return out
}
