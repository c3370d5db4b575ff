package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// maxTries bounds how often a client is asked again whose answers do not fit the form.
const maxTries = 3

// misfit returns why an answer does not fit a form, or "". What it does not understand fits: the agent decides.
func misfit(form *acp.ElicitationSchema, content map[string]json.RawMessage) string {
	for _, name := range form.Required {
		if v, ok := content[name]; !ok || string(v) == "null" {
			return fmt.Sprintf("%s is missing", clip(name))
		}
	}
	for _, p := range form.Properties {
		if v, ok := content[p.Name]; ok {
			if why := misfitOf(p.Schema, v); why != "" {
				return clip(p.Name) + why
			}
		}
	}
	return ""
}

// misfitOf returns why a value does not fit a field, to follow the field's name, or "".
func misfitOf(schema acpv2.ElicitationPropertySchema, v json.RawMessage) string {
	switch s := schema.(type) {
	case *acpv2.StringPropertySchema:
		return misfitText(s, v)
	case *acpv2.NumberPropertySchema:
		var n float64
		switch {
		case json.Unmarshal(v, &n) != nil:
			return " must be a number"
		case s.Minimum != nil && n < *s.Minimum:
			return fmt.Sprintf(" must be at least %v", *s.Minimum)
		case s.Maximum != nil && n > *s.Maximum:
			return fmt.Sprintf(" must be at most %v", *s.Maximum)
		}
	case *acpv2.IntegerPropertySchema:
		var n float64
		switch {
		case json.Unmarshal(v, &n) != nil || n != math.Trunc(n):
			return " must be a whole number"
		case s.Minimum != nil && n < float64(*s.Minimum):
			return fmt.Sprintf(" must be at least %d", *s.Minimum)
		case s.Maximum != nil && n > float64(*s.Maximum):
			return fmt.Sprintf(" must be at most %d", *s.Maximum)
		}
	case *acpv2.BooleanPropertySchema:
		var b bool
		if json.Unmarshal(v, &b) != nil {
			return " must be true or false"
		}
	case *acpv2.MultiSelectPropertySchema:
		return misfitChoice(s, v)
	}
	return ""
}

func misfitText(s *acpv2.StringPropertySchema, v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) != nil {
		return " must be a text"
	}
	n := uint32(min(utf8.RuneCountInString(text), math.MaxUint32))
	isOption := func(o acpv2.EnumOption) bool { return o.Const == text }
	switch {
	case len(s.Enum)+len(s.OneOf) > 0 && !slices.Contains(s.Enum, text) && !slices.ContainsFunc(s.OneOf, isOption):
		return " is not one of the choices"
	case s.MinLength != nil && n < *s.MinLength:
		return fmt.Sprintf(" must have at least %d characters", *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Sprintf(" must have at most %d characters", *s.MaxLength)
	}
	if s.Pattern != "" { // of JavaScript: one that Go cannot compile is left to the agent
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(text) {
			return " must match " + clip(s.Pattern)
		}
	}
	return ""
}

func misfitChoice(s *acpv2.MultiSelectPropertySchema, v json.RawMessage) string {
	var all []string
	if json.Unmarshal(v, &all) != nil {
		return " must be a list of choices"
	}
	var options []string
	switch items := s.Items.(type) {
	case *acpv2.StringMultiSelectItems:
		options = items.Enum
	case *acpv2.TitledMultiSelectItems:
		for _, o := range items.AnyOf {
			options = append(options, o.Const)
		}
	}
	n := uint64(len(all))
	switch {
	case len(options) > 0 && slices.ContainsFunc(all, func(one string) bool { return !slices.Contains(options, one) }):
		return " has what is not one of the choices"
	case s.MinItems != nil && n < *s.MinItems:
		return fmt.Sprintf(" needs at least %d choices", *s.MinItems)
	case s.MaxItems != nil && n > *s.MaxItems:
		return fmt.Sprintf(" takes at most %d choices", *s.MaxItems)
	}
	return ""
}
