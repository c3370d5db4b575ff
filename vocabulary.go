package acp

import "github.com/goacp/acp/acpv2"

// The vocabulary of this package is that of version 2 of the protocol, whatever
// version the peer speaks. The files vocabulary_*_gen.go have the types of package
// acpv2 under names of this package; they are the same types. What is not there is
// rare: use it as acpv2.Name. internal/gen/vocabulary.go has the list.

// Patch is a field of an update with three states: unchanged (its zero value), cleared
// and set to a value. Make one with [Set] or [Clear]. See [acpv2.Patch].
//
//	func (p Patch[T]) Get() (v T, ok bool) // the new value; ok is false if p sets none
//	func (p Patch[T]) Or(v T) T            // the new value, or v if p sets none
//	func (p Patch[T]) Apply(v *T)          // changes *v as p says
//	func (p Patch[T]) IsZero() bool        // p leaves the field unchanged
//	func (p Patch[T]) IsClear() bool       // p removes the value
type Patch[T any] = acpv2.Patch[T]

// Set returns a patch that replaces a field by v.
func Set[T any](v T) Patch[T] { return acpv2.Set(v) }

// Clear returns a patch that removes a field's value.
func Clear[T any]() Patch[T] { return acpv2.Clear[T]() }

// UnmarshalSessionUpdate reads an update that json.Marshal or its method AppendJSON has
// written: the form of version 2, in which [Agent.Record] gets updates. One of a kind that
// is not known is kept as it is. The result may share memory with data.
func UnmarshalSessionUpdate(data []byte) (SessionUpdate, error) {
	return acpv2.UnmarshalSessionUpdate(data)
}

// ChoiceOption returns an option of a session whose value is chosen from a list, for
// [AgentSession.SetOptions]. Values are shown as they are; current is one of them. The
// category says what the option is, such as a mode or a model.
func ChoiceOption(id SessionConfigID, name string, category SessionConfigOptionCategory, current SessionConfigValueID, values ...SessionConfigValueID) SessionConfigOption {
	list := make(SessionConfigSelectOptionList, len(values))
	for i, v := range values {
		list[i] = SessionConfigSelectOption{Value: v, Name: string(v)}
	}
	return SessionConfigOption{
		ConfigID: id, Name: name, Category: category,
		Kind: &SessionConfigSelect{CurrentValue: current, Options: list},
	}
}

// SwitchOption returns an option of a session that is on or off, for
// [AgentSession.SetOptions].
func SwitchOption(id SessionConfigID, name string, on bool) SessionConfigOption {
	return SessionConfigOption{ConfigID: id, Name: name, Kind: &SessionConfigBoolean{CurrentValue: on}}
}
