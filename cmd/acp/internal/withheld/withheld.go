// Package withheld keeps keys from what runs commands: the commands of the built-in agent, MCP servers and
// terminals that are lent. A key goes to the service that it is for, and to nobody else. What a command prints would
// be part of the conversation.
package withheld

import (
	"slices"
	"strings"
)

// MinHidden is the size, in bytes, from which on the value of a key is left out of output. A shorter one may be part
// of anything.
const MinHidden = 12

// Keys are the keys in an environment. The zero value has none. It does not change, and may be used from any
// goroutine.
type Keys struct {
	environ []string
	names   []string
	values  []string
}

// Of returns the keys in an environment: the variables that are named, except those to be passed, and the variables
// of this program that hold tokens, keys, passwords or the addresses of databases, which may contain a password.
func Of(environ, named, pass []string) *Keys {
	k := new(Keys)
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if slices.Contains(pass, name) || !isOwn(name) && !slices.Contains(named, name) {
			k.environ = append(k.environ, v)
			continue
		}
		if !slices.Contains(k.names, name) {
			k.names = append(k.names, name)
		}
		if len(value) >= MinHidden && !slices.Contains(k.values, value) {
			k.values = append(k.values, value)
		}
	}
	if k.environ == nil {
		k.environ = []string{}
	}
	slices.Sort(k.names)
	return k
}

// isOwn reports whether a variable of this program is a key.
func isOwn(name string) bool {
	rest, ok := strings.CutPrefix(strings.ToUpper(name), "ACP_")
	if !ok {
		return false
	}
	return rest == "DB" || strings.HasSuffix(rest, "_DB") || slices.ContainsFunc([]string{"TOKEN", "KEY", "SECRET", "PASSWORD"}, func(s string) bool {
		return rest == s || strings.HasSuffix(rest, "_"+s)
	})
}

// Environ returns the environment without the keys; nil if nothing is known of it, which stands for that of the
// process.
func (k *Keys) Environ() []string {
	if k == nil {
		return nil
	}
	return slices.Clip(k.environ)
}

// Names returns the names of the keys, in order.
func (k *Keys) Names() []string {
	if k == nil {
		return nil
	}
	return slices.Clone(k.names)
}

// Values returns the values that output must not contain.
func (k *Keys) Values() []string {
	if k == nil {
		return nil
	}
	return slices.Clone(k.values)
}

// Variables returns the names of the variables that a text such as "Bearer ${X}" names.
func Variables(text string) (names []string) {
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			return names
		}
		text = text[i+1:]
		name, end := strings.TrimPrefix(text, "{"), "}"
		if name == text {
			n := strings.IndexFunc(text, func(c rune) bool {
				return c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
			})
			if n < 0 {
				n = len(text)
			}
			name = text[:n]
		} else {
			name, _, _ = strings.Cut(name, end)
			name, _, _ = strings.Cut(name, ":") // ${X:-Y}
		}
		if name != "" {
			names = append(names, name)
		}
	}
}
