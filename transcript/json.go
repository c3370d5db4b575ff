package transcript

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/internal/wire"
)

// formVersion is the version of the JSON form. New members and kinds of entries do
// not change it.
const formVersion = 1

// MarshalJSON returns the JSON form described in the documentation of the package.
func (s *Snapshot) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil) }

// AppendJSON appends the JSON form to dst, on one line. Raw JSON in it is spelled as it
// arrived, which encoding/json would change.
func (s *Snapshot) AppendJSON(dst []byte) (_ []byte, err error) {
	dst = wire.AppendInt(append(dst, `{"version":`...), formVersion)
	dst = append(dst, `,"entries":[`...)
	i := 0
	for e := range s.Entries() {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = AppendEntry(dst, e); err != nil {
			return dst, fmt.Errorf("transcript: entry %d: %w", i, err)
		}
		i++
	}
	dst = append(dst, `],`...)
	if dst, err = s.appendSession(dst); err != nil {
		return dst, fmt.Errorf("transcript: session: %w", err)
	}
	dst = append(dst, `"dropped":{`...)
	dst = appendCount(dst, "entries", s.loss.Entries)
	dst = appendCount(dst, "bytes", s.loss.Bytes)
	dst = appendCount(dst, "updates", s.loss.Updates)
	return wire.CloseObject(append(wire.CloseObject(dst), ',')), nil
}

func appendCount(dst []byte, name string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return append(wire.AppendUint(append(append(append(dst, '"'), name...), `":`...), n), ',')
}

func appendString(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return append(wire.AppendString(append(append(append(dst, '"'), name...), `":`...), s), ',')
}

func appendValue(dst []byte, name string, v codec) ([]byte, error) {
	dst = append(append(append(dst, '"'), name...), `":`...)
	dst, err := v.AppendJSON(dst)
	if err != nil {
		return dst, fmt.Errorf("%s: %w", name, err)
	}
	return append(dst, ','), nil
}

// AppendEntry appends an entry to dst in the JSON form of a [Snapshot], on one line. It
// fails if a value of the entry cannot be encoded.
func AppendEntry(dst []byte, e Entry) (_ []byte, err error) {
	dst = appendString(append(dst, '{'), "kind", string(e.EntryKind()))
	if u := e.Update(); u != nil {
		if dst, err = appendValue(dst, "update", u); err != nil {
			return dst, err
		}
	}
	switch e := e.(type) {
	case *Plan:
		if e.Removed {
			dst = append(dst, `"removed":true,`...)
		}
	case *Terminal:
		dst = appendString(dst, "text", e.Plain())
		dst = appendCount(dst, "skipped", e.Skipped)
		if e.head != "" { // all of it: the less Raw has, the more Head returns
			dst = append(base64.StdEncoding.AppendEncode(append(dst, `"head":"`...), []byte(e.head)), `",`...)
		}
	case *Permission:
		if dst, err = appendPermission(dst, e); err != nil {
			return dst, err
		}
	case *TurnEnd:
		dst = appendTurnEnd(dst, e)
	}
	dst = appendCount(dst, "dropped", uint64(e.Dropped()))
	return wire.CloseObject(dst), nil
}

func appendPermission(dst []byte, p *Permission) (_ []byte, err error) {
	dst = appendString(dst, "title", p.Title)
	dst = appendString(dst, "description", p.Description)
	if p.Subject != nil {
		if dst, err = appendValue(dst, "subject", p.Subject); err != nil {
			return dst, err
		}
	}
	dst, err = wire.AppendSlice(append(dst, `"options":`...), p.Options,
		func(o *acpv2.PermissionOption, dst []byte) ([]byte, error) { return o.AppendJSON(dst) })
	if err != nil {
		return dst, wire.In("options", err)
	}
	dst = append(dst, ',')
	if len(p.Meta) > 0 {
		if dst, err = wire.AppendRawObject(append(dst, `"_meta":`...), p.Meta); err != nil {
			return dst, wire.In("_meta", err)
		}
		dst = append(dst, ',')
	}
	if p.Outcome != nil {
		if dst, err = appendValue(dst, "outcome", p.Outcome); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (s *Snapshot) appendSession(dst []byte) (_ []byte, err error) {
	x := s.Session()
	dst = append(dst, `"session":{`...)
	for _, f := range [...]Field{FieldState, FieldUsage, FieldConfigOptions, FieldCommands, FieldInfo} {
		if x.knows(f) {
			if dst, err = appendValue(dst, string(f), x.Update(f)); err != nil {
				return dst, err
			}
		}
	}
	dst = appendCount(dst, "dropped", uint64(x.core.dropped))
	return append(wire.CloseObject(dst), ','), nil
}

// ErrVersion is wrapped by the error of [Snapshot.UnmarshalJSON] if the JSON form has a
// version that this package does not know. It wraps [errors.ErrUnsupported].
var ErrVersion = fmt.Errorf("transcript: unknown version: %w", errors.ErrUnsupported)

// UnmarshalJSON replaces the snapshot by the one in data, which is in the JSON form.
// Unknown members are skipped. Entries of unknown kinds are skipped, too, and counted in
// [Loss]. Entries are numbered anew, from 0. No bounds are applied; [Snapshot.Continue]
// does that. If there is an error, the snapshot is unchanged.
func (s *Snapshot) UnmarshalJSON(data []byte) error {
	var version, entries, session, dropped []byte
	err := members(data, map[string]*[]byte{"version": &version, "entries": &entries, "session": &session, "dropped": &dropped})
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	if string(version) != "1" {
		return ErrVersion
	}
	c := newConversation(unbounded)
	c.nesting += 16 // the form nests deeper than the updates did
	var loss Loss
	if err := loss.read(dropped); err != nil {
		return fmt.Errorf("transcript: dropped: %w", err)
	}
	if len(entries) > 0 {
		var d wire.Decoder
		d.Reset(entries, false)
		for i, ok := 0, d.FirstElem(); ok; i, ok = i+1, d.NextElem() {
			switch known, err := c.restore(d.Raw()); {
			case err != nil:
				return fmt.Errorf("transcript: entry %d: %w", i, err)
			case !known:
				loss.Entries++
			}
		}
		if err := d.Finish(); err != nil {
			return fmt.Errorf("transcript: entries: %w", err)
		}
	}
	if err := c.restoreSession(session); err != nil {
		return fmt.Errorf("transcript: session: %w", err)
	}
	c.loss = loss
	*s = *c.Snapshot()
	return nil
}

// members finds members of an object. The value of a missing one is nil.
func members(data []byte, want map[string]*[]byte) error {
	var d wire.Decoder
	d.Reset(data, false)
	for k, ok := d.FirstKey(); ok; k, ok = d.NextKey() {
		v := want[string(k)]
		switch {
		case v == nil:
			d.Skip()
		case *v != nil:
			d.Duplicate()
		default:
			*v = d.Raw()
		}
	}
	return d.Finish()
}

func (l *Loss) read(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var entries, bytes, updates []byte
	if err := members(data, map[string]*[]byte{"entries": &entries, "bytes": &bytes, "updates": &updates}); err != nil {
		return err
	}
	return errors.Join(readCount(entries, &l.Entries), readCount(bytes, &l.Bytes), readCount(updates, &l.Updates))
}

func readCount(data []byte, v *uint64) error {
	return readInto(data, func(d *wire.Decoder) { *v = d.Uint64() })
}

// readInto reads a member, if it is present.
func readInto(data []byte, read func(*wire.Decoder)) error {
	if len(data) == 0 {
		return nil
	}
	var d wire.Decoder
	d.Reset(data, false)
	read(&d)
	return d.Finish()
}

// restore adds a saved entry. known reports whether its kind is known.
func (c *Conversation) restore(data []byte) (known bool, err error) {
	var kind, update, removed, text, skipped, head, dropped []byte
	err = members(data, map[string]*[]byte{
		"kind": &kind, "update": &update, "removed": &removed, "text": &text, "skipped": &skipped, "head": &head,
		"dropped": &dropped,
	})
	if err != nil {
		return false, err
	}
	var name, plain, begin string
	var gone bool
	var lost, before uint64
	err = errors.Join(
		readInto(kind, func(d *wire.Decoder) { name = d.Str() }),
		readInto(text, func(d *wire.Decoder) { plain = d.Str() }),
		readInto(head, func(d *wire.Decoder) { begin = d.Str() }),
		readInto(removed, func(d *wire.Decoder) { gone = d.Bool() }),
		readCount(skipped, &before), readCount(dropped, &lost))
	if err != nil {
		return false, err
	}
	var ch Change
	switch EntryKind(name) {
	case KindPermission:
		if ch, err = c.restorePermission(data); err != nil {
			return false, err
		}
	case KindTurnEnd:
		if ch, err = c.restoreTurnEnd(data); err != nil {
			return false, err
		}
	case KindMessage, KindToolCall, KindPlan, KindTerminal, KindNotice, KindCompaction, KindSubagent, KindSessionMessage, KindUnknown:
		u, err := acpv2.UnmarshalSessionUpdate(update)
		if err != nil {
			return false, fmt.Errorf("update: %w", err)
		}
		if ch = c.apply(u); ch.Op != OpCreated || string(ch.Kind) != name {
			return false, fmt.Errorf("update: it does not make a new %s", EntryKind(name))
		}
	default:
		return false, nil
	}
	e := c.list.get(ch.Seq)
	switch e := e.(type) {
	case *Plan:
		e.Removed = gone
	case *Terminal:
		e.Skipped = before
		if b, err := base64.StdEncoding.DecodeString(begin); err == nil {
			e.head = string(b)
		}
		e.restoreText(plain)
		e.charge(c)
	}
	e.base().dropped = int64(min(lost, math.MaxInt64))
	return true, nil
}

func (c *Conversation) restorePermission(data []byte) (Change, error) {
	var title, description, subject, options, meta, outcome []byte
	err := members(data, map[string]*[]byte{
		"title": &title, "description": &description, "subject": &subject, "options": &options, "_meta": &meta, "outcome": &outcome,
	})
	if err != nil {
		return Change{}, err
	}
	var req acpv2.RequestPermissionRequest
	var answer acpv2.RequestPermissionOutcome
	err = errors.Join(
		readInto(title, func(d *wire.Decoder) { req.Title = d.Str() }),
		readInto(description, func(d *wire.Decoder) { req.Description = d.Str() }),
		readInto(meta, func(d *wire.Decoder) { req.Meta = d.RawObject() }),
		readInto(options, func(d *wire.Decoder) { req.Options = wire.Slice(d, wire.Item[acpv2.PermissionOption]) }))
	if err == nil && len(subject) > 0 {
		req.Subject, err = acpv2.UnmarshalRequestPermissionSubject(subject)
	}
	if err == nil && len(outcome) > 0 {
		answer, err = acpv2.UnmarshalRequestPermissionOutcome(outcome)
	}
	if err != nil {
		return Change{}, err
	}
	p := &Permission{}
	c.add(p, 0)
	c.setPermission(p, &req, req.Subject)
	p.Outcome = answer
	c.charge(&p.core, partFixed, p.sizes[partFixed]+c.size(answer))
	return changed(p, OpCreated), nil
}

func (c *Conversation) restoreSession(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var state, usage, options, commands, info, dropped []byte
	err := members(data, map[string]*[]byte{
		"state": &state, "usage": &usage, "configOptions": &options, "commands": &commands, "info": &info, "dropped": &dropped,
	})
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		data  []byte
		field Field
	}{
		{"state", state, FieldState}, {"usage", usage, FieldUsage}, {"configOptions", options, FieldConfigOptions},
		{"commands", commands, FieldCommands}, {"info", info, FieldInfo},
	} {
		if len(part.data) == 0 {
			continue
		}
		u, err := acpv2.UnmarshalSessionUpdate(part.data)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		if ch := c.apply(u); ch.Op != OpSession || ch.Field != part.field {
			return fmt.Errorf("%s: it is another update", part.name)
		}
	}
	var lost uint64
	if err := readCount(dropped, &lost); err != nil {
		return err
	}
	c.session().core.dropped = int64(min(lost, math.MaxInt64))
	return nil
}
