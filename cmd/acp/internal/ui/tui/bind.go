package tui

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goacp/acp/cmd/acp/internal/config"
)

// fixed are the keys that have the same meaning everywhere and cannot be given to an action.
var fixed = []string{
	"enter", "esc", "tab", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "space", "backspace", "delete",
	"ctrl+c", "ctrl+d", "ctrl+z", "ctrl+l", "ctrl+v", "ctrl+j", "ctrl+m", "ctrl+i", "ctrl+h", "alt+enter", "shift+enter",
}

// boundActions returns the actions with the keys of the setting ui.keys in place of their own. With
// an error, which names all mistakes, the other keys are as set.
func boundActions(keys map[string]string) ([]action, error) {
	all := actions()
	var mistakes []error
	var ids []string
	for _, a := range all {
		ids = append(ids, a.id)
	}
	for _, id := range slices.Sorted(maps.Keys(keys)) {
		i := slices.Index(ids, id)
		if i < 0 {
			hint := "the actions are " + strings.Join(ids, ", ")
			if near := config.Near(id, ids); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			mistakes = append(mistakes, fmt.Errorf("ui.keys: there is no action %q: %s", id, hint))
			continue
		}
		key, err := parseKey(keys[id])
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("ui.keys.%s: %w", id, err))
			continue
		}
		all[i].key, all[i].also, all[i].name = key, "", keyName(key)
	}
	// A key that the user has given to an action is no longer that of another one.
	for i, a := range all {
		for j, b := range all {
			_, aSet := keys[a.id]
			_, bSet := keys[b.id]
			switch {
			case i == j || b.key == "" || a.key != b.key && a.also != b.key:
			case aSet && bSet && i < j:
				mistakes = append(mistakes, fmt.Errorf("ui.keys: %s is the key of both %s and %s", b.key, a.id, b.id))
			case bSet && !aSet:
				if a.key == b.key {
					all[i].key, all[i].name = "", ""
				}
				if a.also == b.key {
					all[i].also = ""
				}
			}
		}
	}
	return all, errors.Join(mistakes...)
}

// parseKey returns a key as Bubble Tea calls it; "" stands for none.
func parseKey(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if s == "" {
		return "", nil
	}
	parts := strings.Split(s, "+")
	last := parts[len(parts)-1]
	var mods []string
	for _, mod := range []string{"ctrl", "alt", "shift"} { // the order in which Bubble Tea has them
		if slices.Contains(parts[:len(parts)-1], mod) {
			mods = append(mods, mod)
		}
	}
	key := strings.Join(append(mods, last), "+")
	function := len(last) > 1 && last[0] == 'f' && strings.Trim(last[1:], "0123456789") == ""
	switch {
	case len(mods) != len(parts)-1 || !function && len([]rune(last)) != 1 && last != "tab":
		return "", fmt.Errorf(`%q is not a key such as "ctrl+x", "alt+d" or "f5"`, s)
	case slices.Contains(fixed, key):
		return "", fmt.Errorf("%s cannot be changed", keyName(key))
	case !function && last != "tab" && !slices.Contains(mods, "ctrl") && !slices.Contains(mods, "alt"):
		return "", fmt.Errorf("%q is what users type: add ctrl or alt", s)
	}
	return key, nil
}

// keyName returns the name of a key for people.
func keyName(key string) string {
	parts := strings.Split(key, "+")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "+")
}
