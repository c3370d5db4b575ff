package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/goacp/acp/acpv1"
	"github.com/goacp/acp/acpv2"
)

// What the options made from the modes and the legacy models of version 1 are
// called.
const (
	ModeOption  acpv2.SessionConfigID = "mode"
	ModelOption acpv2.SessionConfigID = "model"
)

// OptionsFromV1 converts configuration options. A choice without values, which
// version 2 does not allow, gets its current value as the only one.
func OptionsFromV1(list []acpv1.SessionConfigOption) []acpv2.SessionConfigOption {
	return each(list, func(o acpv1.SessionConfigOption) acpv2.SessionConfigOption {
		v := acpv2.SessionConfigOption{ConfigID: acpv2.SessionConfigID(o.ID), Name: o.Name, Description: o.Description,
			Category: acpv2.SessionConfigOptionCategory(o.Category), Meta: o.Meta, Unknown: without(o.Unknown, "configId")}
		switch k := o.Kind.(type) {
		case *acpv1.SessionConfigSelect:
			current := acpv2.SessionConfigValueID(k.CurrentValue)
			v.Kind = &acpv2.SessionConfigSelect{CurrentValue: current, Options: choicesFromV1(k.Options, current)}
		case *acpv1.SessionConfigBoolean:
			v.Kind = &acpv2.SessionConfigBoolean{CurrentValue: k.CurrentValue}
		case *acpv1.UnknownSessionConfigOptionKind:
			v.Kind = &acpv2.UnknownSessionConfigOptionKind{Type: k.Type, Raw: without(k.Raw, "configId")}
		}
		return v
	})
}

// OptionsToV1 converts configuration options, those of category mode included.
func OptionsToV1(list []acpv2.SessionConfigOption) []acpv1.SessionConfigOption {
	return each(list, func(o acpv2.SessionConfigOption) acpv1.SessionConfigOption {
		v := acpv1.SessionConfigOption{ID: acpv1.SessionConfigID(o.ConfigID), Name: o.Name, Description: o.Description,
			Category: acpv1.SessionConfigOptionCategory(o.Category), Meta: o.Meta, Unknown: without(o.Unknown, "id")}
		switch k := o.Kind.(type) {
		case *acpv2.SessionConfigSelect:
			v.Kind = &acpv1.SessionConfigSelect{CurrentValue: acpv1.SessionConfigValueID(k.CurrentValue), Options: choicesToV1(k.Options)}
		case *acpv2.SessionConfigBoolean:
			v.Kind = &acpv1.SessionConfigBoolean{CurrentValue: k.CurrentValue}
		case *acpv2.UnknownSessionConfigOptionKind:
			v.Kind = &acpv1.UnknownSessionConfigOptionKind{Type: k.Type, Raw: without(k.Raw, "id")}
		}
		return v
	})
}

func choicesFromV1(o acpv1.SessionConfigSelectOptions, current acpv2.SessionConfigValueID) acpv2.SessionConfigSelectOptions {
	switch o := o.(type) {
	case acpv1.SessionConfigSelectOptionList:
		if len(o) > 0 {
			return acpv2.SessionConfigSelectOptionList(each(o, choiceFromV1))
		}
	case acpv1.SessionConfigSelectGroupList:
		if len(o) > 0 {
			return acpv2.SessionConfigSelectGroupList(each(o, func(g acpv1.SessionConfigSelectGroup) acpv2.SessionConfigSelectGroup {
				return acpv2.SessionConfigSelectGroup{GroupID: acpv2.SessionConfigGroupID(g.Group), Name: g.Name,
					Options: each(g.Options, choiceFromV1), Meta: g.Meta, Unknown: without(g.Unknown, "groupId")}
			}))
		}
	}
	return acpv2.SessionConfigSelectOptionList{{Value: current, Name: string(current)}}
}

func choicesToV1(o acpv2.SessionConfigSelectOptions) acpv1.SessionConfigSelectOptions {
	if groups, ok := o.(acpv2.SessionConfigSelectGroupList); ok {
		return acpv1.SessionConfigSelectGroupList(each(groups, func(g acpv2.SessionConfigSelectGroup) acpv1.SessionConfigSelectGroup {
			return acpv1.SessionConfigSelectGroup{Group: acpv1.SessionConfigGroupID(g.GroupID), Name: g.Name,
				Options: each(g.Options, choiceToV1), Meta: g.Meta, Unknown: without(g.Unknown, "group")}
		}))
	}
	list, _ := o.(acpv2.SessionConfigSelectOptionList)
	return acpv1.SessionConfigSelectOptionList(each(list, choiceToV1))
}

func choiceFromV1(o acpv1.SessionConfigSelectOption) acpv2.SessionConfigSelectOption {
	return acpv2.SessionConfigSelectOption{Value: acpv2.SessionConfigValueID(o.Value), Name: o.Name, Description: o.Description,
		Meta: o.Meta, Unknown: o.Unknown}
}

func choiceToV1(o acpv2.SessionConfigSelectOption) acpv1.SessionConfigSelectOption {
	return acpv1.SessionConfigSelectOption{Value: acpv1.SessionConfigValueID(o.Value), Name: o.Name, Description: o.Description,
		Meta: o.Meta, Unknown: o.Unknown}
}

// OptionValueFromV1 converts the value in a request to set an option; nil stays
// nil.
func OptionValueFromV1(v acpv1.SessionConfigOptionValue) acpv2.SessionConfigOptionValue {
	switch v := v.(type) {
	case *acpv1.SessionConfigOptionValueID:
		return &acpv2.SessionConfigOptionValueID{Value: acpv2.SessionConfigValueID(v.Value)}
	case *acpv1.SessionConfigOptionValueBoolean:
		return &acpv2.SessionConfigOptionValueBoolean{Value: v.Value}
	}
	return nil
}

// OptionValueToV1 converts the value in a request to set an option. A value of
// a kind that this library does not know has no form in version 1: the error
// wraps [errors.ErrUnsupported].
func OptionValueToV1(v acpv2.SessionConfigOptionValue) (acpv1.SessionConfigOptionValue, error) {
	switch v := v.(type) {
	case *acpv2.SessionConfigOptionValueID:
		return &acpv1.SessionConfigOptionValueID{Value: acpv1.SessionConfigValueID(v.Value)}, nil
	case *acpv2.SessionConfigOptionValueBoolean:
		return &acpv1.SessionConfigOptionValueBoolean{Value: v.Value}, nil
	}
	return nil, unsupported("an option value of this kind")
}

// ModeFromV1 shows the modes of a session as an option called [ModeOption]; ok
// is false when there are none.
func ModeFromV1(m *acpv1.SessionModeState) (o acpv2.SessionConfigOption, ok bool) {
	if m == nil {
		return o, false
	}
	choices := each(m.AvailableModes, func(m acpv1.SessionMode) acpv2.SessionConfigSelectOption {
		return acpv2.SessionConfigSelectOption{Value: acpv2.SessionConfigValueID(m.ID), Name: m.Name, Description: m.Description,
			Meta: m.Meta, Unknown: without(m.Unknown, "value")}
	})
	o = selectOption(ModeOption, "Mode", acpv2.SessionConfigOptionCategoryMode, acpv2.SessionConfigValueID(m.CurrentModeID), choices)
	o.Meta = m.Meta
	return o, true
}

// ModesToV1 shows the option of category mode as the modes of a session; nil
// when there is none. Groups of choices are flattened.
func ModesToV1(list []acpv2.SessionConfigOption) *acpv1.SessionModeState {
	i := optionOf(list, acpv2.SessionConfigOptionCategoryMode)
	if i < 0 {
		return nil
	}
	s := list[i].Kind.(*acpv2.SessionConfigSelect)
	modes := each(choices(s), func(o acpv2.SessionConfigSelectOption) acpv1.SessionMode {
		return acpv1.SessionMode{ID: acpv1.SessionModeID(o.Value), Name: o.Name, Description: o.Description,
			Meta: o.Meta, Unknown: without(o.Unknown, "id")}
	})
	return &acpv1.SessionModeState{CurrentModeID: acpv1.SessionModeID(s.CurrentValue), AvailableModes: modes, Meta: list[i].Meta}
}

// legacyModels is a member of session results in drafts of version 1.
type legacyModels struct {
	CurrentModelID  string        `json:"currentModelId"`
	AvailableModels []legacyModel `json:"availableModels"`
}

type legacyModel struct {
	ModelID     string `json:"modelId"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// ModelFromV1 shows the models that drafts of version 1 list in a session
// result as an option called [ModelOption]. They are among the unknown members
// of the result; ok is false when they are not, or are malformed.
func ModelFromV1(unknown json.RawMessage) (o acpv2.SessionConfigOption, ok bool) {
	raw, _ := take(unknown, "models")
	var m legacyModels
	if raw == nil || json.Unmarshal(raw, &m) != nil || m.CurrentModelID == "" {
		return o, false
	}
	choices := each(m.AvailableModels, func(m legacyModel) acpv2.SessionConfigSelectOption {
		if m.Name == "" {
			m.Name = m.ModelID
		}
		return acpv2.SessionConfigSelectOption{Value: acpv2.SessionConfigValueID(m.ModelID), Name: m.Name, Description: m.Description}
	})
	return selectOption(ModelOption, "Model", acpv2.SessionConfigOptionCategoryModel, acpv2.SessionConfigValueID(m.CurrentModelID), choices), true
}

// ModelsToV1 adds the option of category model, if there is one, to the unknown
// members of a session result the way drafts of version 1 list models.
func ModelsToV1(list []acpv2.SessionConfigOption, unknown json.RawMessage) json.RawMessage {
	i := optionOf(list, acpv2.SessionConfigOptionCategoryModel)
	if i < 0 {
		return unknown
	}
	s := list[i].Kind.(*acpv2.SessionConfigSelect)
	m := legacyModels{CurrentModelID: string(s.CurrentValue), AvailableModels: []legacyModel{}}
	for _, o := range choices(s) {
		m.AvailableModels = append(m.AvailableModels, legacyModel{string(o.Value), o.Name, o.Description})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return unknown
	}
	return put(without(unknown, "models"), "models", raw)
}

// SessionOptionsFromV1 gathers what a session result of version 1 says about
// settings: its options, its modes and, among its unknown members, the legacy
// models. Modes and models are left out where an option has their category,
// which is then the same thing. The result is not nil.
func SessionOptionsFromV1(options []acpv1.SessionConfigOption, modes *acpv1.SessionModeState, unknown json.RawMessage) []acpv2.SessionConfigOption {
	list := OptionsFromV1(options)
	if list == nil {
		list = []acpv2.SessionConfigOption{}
	}
	if o, ok := ModeFromV1(modes); ok && !hasCategory(list, o.Category) {
		list = append(list, o)
	}
	if o, ok := ModelFromV1(unknown); ok && !hasCategory(list, o.Category) {
		list = append(list, o)
	}
	return list
}

// selectOption makes a choice of one value; without choices the current value
// is the only one.
func selectOption(id acpv2.SessionConfigID, name string, category acpv2.SessionConfigOptionCategory, current acpv2.SessionConfigValueID, choices acpv2.SessionConfigSelectOptionList) acpv2.SessionConfigOption {
	if len(choices) == 0 {
		choices = acpv2.SessionConfigSelectOptionList{{Value: current, Name: string(current)}}
	}
	return acpv2.SessionConfigOption{ConfigID: id, Name: name, Category: category,
		Kind: &acpv2.SessionConfigSelect{CurrentValue: current, Options: choices}}
}

// choices lists the values of a choice, whether grouped or not.
func choices(s *acpv2.SessionConfigSelect) []acpv2.SessionConfigSelectOption {
	all := []acpv2.SessionConfigSelectOption{}
	switch o := s.Options.(type) {
	case acpv2.SessionConfigSelectOptionList:
		all = append(all, o...)
	case acpv2.SessionConfigSelectGroupList:
		for _, g := range o {
			all = append(all, g.Options...)
		}
	}
	return all
}

// optionOf returns the index of the first choice of a category, -1 if there is
// none.
func optionOf(list []acpv2.SessionConfigOption, c acpv2.SessionConfigOptionCategory) int {
	return slices.IndexFunc(list, func(o acpv2.SessionConfigOption) bool {
		s, ok := o.Kind.(*acpv2.SessionConfigSelect)
		return ok && s != nil && o.Category == c
	})
}

func hasCategory(list []acpv2.SessionConfigOption, c acpv2.SessionConfigOptionCategory) bool {
	return slices.ContainsFunc(list, func(o acpv2.SessionConfigOption) bool { return o.Category == c })
}

// ModeOptionID returns the id of the option that stands for the modes of
// version 1: the first choice of category mode. ok is false when there is none.
func ModeOptionID(list []acpv2.SessionConfigOption) (id acpv2.SessionConfigID, ok bool) {
	return optionID(list, acpv2.SessionConfigOptionCategoryMode)
}

// ModelOptionID is [ModeOptionID] for the legacy models.
func ModelOptionID(list []acpv2.SessionConfigOption) (id acpv2.SessionConfigID, ok bool) {
	return optionID(list, acpv2.SessionConfigOptionCategoryModel)
}

func optionID(list []acpv2.SessionConfigOption, c acpv2.SessionConfigOptionCategory) (acpv2.SessionConfigID, bool) {
	i := optionOf(list, c)
	if i < 0 {
		return "", false
	}
	return list[i].ConfigID, true
}

// WithValue returns a copy of the list in which the choice with the given id
// has another current value, for an answer to session/set_mode, which has none
// of its own. An id that is not there changes nothing.
func WithValue(list []acpv2.SessionConfigOption, id acpv2.SessionConfigID, value acpv2.SessionConfigValueID) []acpv2.SessionConfigOption {
	list = slices.Clone(list)
	for i := range list {
		if s, ok := list[i].Kind.(*acpv2.SessionConfigSelect); ok && s != nil && list[i].ConfigID == id {
			list[i].Kind = &acpv2.SessionConfigSelect{CurrentValue: value, Options: s.Options}
			break
		}
	}
	return list
}

func unsupported(what string) error {
	return fmt.Errorf("%s has no form in the other protocol version: %w", what, errors.ErrUnsupported)
}
