package conformance

import (
	"strings"

	"github.com/goacp/acp/internal/wire"
)

var (
	ckModeCurrent = decides("agent/mode/current")
	ckModeUnique  = decides("agent/mode/unique-ids")
	ckModeUpdate  = decides("agent/mode/update")
	ckModeOffered = decides("client/mode/offered")
	ckOptCurrent  = decides("agent/option/current")
	ckOptUnique   = decides("agent/option/unique-ids")
	ckOptValues   = decides("agent/option/unique-values")
	ckOptCategory = decides("agent/option/category")
	ckOptOffered  = decides("client/option/offered")
	ckOptValue    = decides("client/option/value")
	ckOptAll      = decides("agent/option/all")
	ckOptApplied  = decides("agent/option/applied")
	ckOptArrays   = decides("agent/options/arrays")
)

// An option is what is known of a setting.
type option struct {
	boolean bool
	other   bool // of a kind nobody knows
	values  map[string]bool
	current string
}

// modes looks at the modes of a session.
func (m *Monitor) modes(s *session, path, current string, ids []string) {
	s.modes, s.hasModes = make(map[string]bool, len(ids)), true
	for _, id := range ids {
		if m.breaks(ckModeUnique, s.modes[brief(id)]) {
			m.add(ckModeUnique, path, "offered the mode %s twice", quote(id))
		}
		if len(s.modes) < maxEntries {
			s.modes[brief(id)] = true
		}
	}
	if m.breaks(ckModeCurrent, !s.modes[brief(current)] && len(s.modes) < maxEntries) {
		m.add(ckModeCurrent, path+".currentModeId", "is in the mode %s, which is not one of those it offers", quote(current))
	}
}

func (m *Monitor) noModes(s *session) { s.modes, s.hasModes = nil, true }

// knowsMode reports whether the agent offers a mode, as far as is known.
func (s *session) knowsMode(id string) bool {
	return !s.hasModes || s.modes[brief(id)] || len(s.modes) >= maxEntries
}

// optionSeen is a setting as a message shows it, in both versions.
type settingSeen struct {
	id, category string
	known        bool // the category
	option
	list []string // its values
}

// settings looks at the settings of a session, which replace those before.
func (m *Monitor) settings(s *session, path string, list []settingSeen) {
	m.allSettings(s, path, list)
	s.options, s.hasOpts = make(map[string]*option, len(list)), true
	for i := range list {
		o := &list[i]
		if m.breaks(ckOptUnique, s.options[brief(o.id)] != nil) {
			m.add(ckOptUnique, path, "offered two settings with the id %s", quote(o.id))
		}
		if m.breaks(ckOptCategory, !o.known && !strings.HasPrefix(o.category, "_")) {
			m.add(ckOptCategory, path, "put the setting %s into the unknown category %s", quote(o.id), quote(o.category))
		}
		if o.boolean {
			m.wanted(ckCapBoolean, m.client.boolean, path, "a setting that is on or off")
		} else if !o.other {
			o.values = make(map[string]bool, len(o.list))
			for _, v := range o.list {
				if m.breaks(ckOptValues, o.values[brief(v)]) {
					m.add(ckOptValues, path, "offered the value %s twice for the setting %s", quote(v), quote(o.id))
				}
				if len(o.values) < maxEntries {
					o.values[brief(v)] = true
				}
			}
			if m.breaks(ckOptCurrent, !o.values[brief(o.current)] && len(o.values) < maxEntries) {
				m.add(ckOptCurrent, path, "has the value %s for the setting %s, which is not one of those it offers", quote(o.current), quote(o.id))
			}
		}
		if len(s.options) < maxEntries {
			o.current = brief(o.current)
			s.options[brief(o.id)] = &o.option
		}
	}
}

// allSettings looks for a list that has nothing but the setting that has changed. Others
// may go with it, but hardly all of them.
func (m *Monitor) allSettings(s *session, path string, list []settingSeen) {
	if !s.hasOpts || len(s.options) < 2 || len(list) == 0 || s.opening > 0 {
		return
	}
	was := s.options[brief(list[0].id)]
	alone := len(list) == 1 && was != nil && was.current != brief(list[0].current)
	if m.breaks(ckOptAll, alone) {
		m.add(ckOptAll, path, "told the setting %s, which has changed, and left out %d others", quote(list[0].id), len(s.options)-1)
	}
}

// optionLists looks at what session/options was answered with: version 2 has no null there.
func (m *Monitor) optionLists(e *envelope) {
	d := &m.d
	d.Seek(e.result)
	if m.version != 2 || d.Peek() != '{' {
		return
	}
	var o wire.Decoder
	o.Reset(d.Raw(), false)
	for k, ok := o.FirstKey(); ok; k, ok = o.NextKey() {
		if name := string(k); name == "configOptions" || name == "availableCommands" {
			m.expect(ckOptArrays, o.Peek() == '[', "result."+name, "answered session/options with %s that are not an array", name)
		}
		o.Skip()
	}
}

// setFacts is what the answer to a changed setting is judged by.
type setFacts struct {
	id, value string
	boolean   bool
	crossed   bool // another change of it was in flight
}

// set looks at a request to change a setting.
func (m *Monitor) set(r *request, s *session, id, value string, boolean, other bool) {
	r.s = s
	if s == nil || other {
		return
	}
	f := &setFacts{id: brief(id), value: brief(value), boolean: boolean}
	for _, e := range m.open[theClient].m {
		if other, ok := e.v.facts.(*setFacts); ok && e.v.s == s && other.id == f.id {
			other.crossed, f.crossed = true, true // either answer may show either value
		}
	}
	r.facts = f
	if !s.hasOpts || len(s.options) >= maxEntries {
		return
	}
	o := s.options[brief(id)]
	if m.breaks(ckOptOffered, o == nil) {
		m.add(ckOptOffered, "params.configId", "changed the setting %s, which was not offered", quote(id))
	}
	if o == nil || o.other {
		return
	}
	bad := boolean != o.boolean || !boolean && !o.values[brief(value)] && len(o.values) < maxEntries
	if m.breaks(ckOptValue, bad) {
		m.add(ckOptValue, "params.value", "gave the setting %s the value %s, which was not offered", quote(id), quote(value))
	}
}

// applied looks at the settings after one was changed.
func (m *Monitor) applied(r *request) {
	f, ok := r.facts.(*setFacts)
	if !ok || r.s == nil || f.crossed {
		return
	}
	o := r.s.options[f.id]
	if o == nil {
		return
	}
	if m.breaks(ckOptApplied, o.current != f.value) {
		m.add(ckOptApplied, "result.configOptions", "accepted the value %s for the setting %s and answered with %s", quote(f.value), quote(f.id), quote(o.current))
	}
}
