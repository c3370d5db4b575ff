package plain

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/backend"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// elicit is the hook of that name of the frontend: a form is filled in field by field.
func (c *conversation) elicit(ctx context.Context, _ *backend.Session, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
	lines := []string{"The agent asks: " + safetext.Text(req.Message)}
	if req.Form == nil {
		lines = append(lines, "  It wants you to visit: "+safetext.Line(req.URL, 4000), "  Type y if you do, n to decline, or press Enter to dismiss.")
		for {
			line, ok, err := c.ask(ctx, lines, "Your answer: ")
			switch {
			case err != nil || !ok:
				return acp.CancelElicitation(), err
			}
			switch strings.ToLower(strings.TrimSpace(line)) {
			case "y", "yes":
				return acp.AcceptElicitation(nil), nil
			case "n", "no":
				return acp.DeclineElicitation(), nil
			case "":
				return acp.CancelElicitation(), nil
			}
			lines = []string{"Type y, n or nothing."}
		}
	}
	lines = append(lines, "  /decline declines, /dismiss dismisses the questions; Enter alone takes what is in brackets or leaves a field empty.")
	values := map[string]json.RawMessage{}
	for _, p := range req.Form.Properties {
		f := newField(p, slices.Contains(req.Form.Required, p.Name))
		lines = append(lines, f.lines...)
		for {
			line, ok, err := c.ask(ctx, lines, f.prompt)
			if err != nil || !ok {
				return acp.CancelElicitation(), err
			}
			switch strings.TrimSpace(line) {
			case "/decline":
				return acp.DeclineElicitation(), nil
			case "/dismiss":
				return acp.CancelElicitation(), nil
			}
			v, problem := f.value(line)
			if problem == "" {
				if v != nil {
					values[p.Name] = v
				}
				break
			}
			lines = []string{"  Not taken: " + problem + "."}
		}
		lines = nil
	}
	return acp.AcceptElicitation(values), nil
}

// A field is a field of a form as lines.
type field struct {
	lines  []string
	prompt string
	// value reads an answer; nil leaves the field empty.
	value func(line string) (_ json.RawMessage, problem string)
}

func newField(p acpv2.ElicitationProperty, required bool) (f field) {
	title, what, def := "", "", ""
	empty := func() (json.RawMessage, string) {
		if required {
			return nil, "it is needed"
		}
		return nil, ""
	}
	switch s := p.Schema.(type) {
	case *acpv2.StringPropertySchema:
		title, what = s.Title, s.Description
		options := slices.Clone(s.OneOf)
		for _, e := range s.Enum {
			options = append(options, acpv2.EnumOption{Const: e})
		}
		if s.Default != nil {
			def = *s.Default
		}
		f.value = func(line string) (json.RawMessage, string) {
			if line == "" && s.Default != nil {
				line = *s.Default
			}
			if line == "" {
				return empty()
			}
			if len(options) > 0 {
				i, ok := pick(options, line)
				if !ok {
					return nil, "there is no such choice"
				}
				return encode(options[i].Const), ""
			}
			return encode(line), textProblem(s, line)
		}
		defer func() { f.lines = append(f.lines, choices(options)...) }()
	case *acpv2.NumberPropertySchema:
		title, what = s.Title, s.Description
		if s.Default != nil {
			def = strconv.FormatFloat(*s.Default, 'g', -1, 64)
		}
		f.value = func(line string) (json.RawMessage, string) {
			if line = strings.TrimSpace(line); line == "" {
				line = def
			}
			if line == "" {
				return empty()
			}
			n, err := strconv.ParseFloat(line, 64)
			switch {
			case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
				return nil, "it is not a number"
			case s.Minimum != nil && n < *s.Minimum:
				return nil, fmt.Sprintf("it is at least %v", *s.Minimum)
			case s.Maximum != nil && n > *s.Maximum:
				return nil, fmt.Sprintf("it is at most %v", *s.Maximum)
			}
			return encode(n), ""
		}
	case *acpv2.IntegerPropertySchema:
		title, what = s.Title, s.Description
		if s.Default != nil {
			def = strconv.FormatInt(*s.Default, 10)
		}
		f.value = func(line string) (json.RawMessage, string) {
			if line = strings.TrimSpace(line); line == "" {
				line = def
			}
			if line == "" {
				return empty()
			}
			n, err := strconv.ParseInt(line, 10, 64)
			switch {
			case err != nil:
				return nil, "it is not a whole number"
			case s.Minimum != nil && n < *s.Minimum:
				return nil, fmt.Sprintf("it is at least %d", *s.Minimum)
			case s.Maximum != nil && n > *s.Maximum:
				return nil, fmt.Sprintf("it is at most %d", *s.Maximum)
			}
			return encode(n), ""
		}
	case *acpv2.BooleanPropertySchema:
		title, what, def = s.Title, s.Description+" (y or n)", "n"
		if s.Default != nil && *s.Default {
			def = "y"
		}
		f.value = func(line string) (json.RawMessage, string) {
			if line = strings.ToLower(strings.TrimSpace(line)); line == "" {
				line = def
			}
			switch line {
			case "y", "yes", "true":
				return encode(true), ""
			case "n", "no", "false":
				return encode(false), ""
			}
			return nil, "it is y or n"
		}
	case *acpv2.MultiSelectPropertySchema:
		title, what, def = s.Title, s.Description+" (several with commas)", strings.Join(s.Default, ", ")
		var options []acpv2.EnumOption
		switch items := s.Items.(type) {
		case *acpv2.StringMultiSelectItems:
			for _, e := range items.Enum {
				options = append(options, acpv2.EnumOption{Const: e})
			}
		case *acpv2.TitledMultiSelectItems:
			options = items.AnyOf
		}
		f.value = func(line string) (json.RawMessage, string) {
			return several(s, options, line, empty)
		}
		defer func() { f.lines = append(f.lines, choices(options)...) }()
	default:
		f.value = func(line string) (json.RawMessage, string) {
			if line != "" {
				return nil, "this program does not know this kind of field"
			}
			return empty()
		}
	}
	if title == "" {
		title = p.Name
	}
	if what = safetext.Line(what, 500); what != "" {
		f.lines = []string{"  " + what}
	}
	f.prompt = safetext.Line(title, maxTitle)
	if def != "" {
		f.prompt += " [" + safetext.Line(def, maxTitle) + "]"
	} else if required {
		f.prompt += " (needed)"
	}
	f.prompt += ": "
	return f
}

func several(s *acpv2.MultiSelectPropertySchema, options []acpv2.EnumOption, line string, empty func() (json.RawMessage, string)) (json.RawMessage, string) {
	all := slices.Clone(s.Default)
	if line = strings.TrimSpace(line); line != "" {
		all = nil
		for word := range strings.SplitSeq(line, ",") {
			i, ok := pick(options, strings.TrimSpace(word))
			if !ok {
				return nil, "there is no such choice"
			}
			if !slices.Contains(all, options[i].Const) {
				all = append(all, options[i].Const)
			}
		}
	}
	n := uint64(len(all))
	switch {
	case n == 0:
		return empty()
	case s.MinItems != nil && n < *s.MinItems:
		return nil, fmt.Sprintf("there are at least %d", *s.MinItems)
	case s.MaxItems != nil && n > *s.MaxItems:
		return nil, fmt.Sprintf("there are at most %d", *s.MaxItems)
	}
	return encode(all), ""
}

// choices lists options, numbered from 1.
func choices(options []acpv2.EnumOption) (lines []string) {
	for i, o := range options {
		name := safetext.Line(o.Title, maxTitle)
		if name == "" {
			name = safetext.Line(o.Const, maxTitle)
		}
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, name))
	}
	return lines
}

// pick returns the option that a number or a value names.
func pick(options []acpv2.EnumOption, s string) (int, bool) {
	for i, o := range options {
		if o.Const == s {
			return i, true
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	return n - 1, err == nil && n >= 1 && n <= len(options)
}

func textProblem(s *acpv2.StringPropertySchema, text string) string {
	n := uint32(min(utf8.RuneCountInString(text), math.MaxUint32))
	switch {
	case s.MinLength != nil && n < *s.MinLength:
		return fmt.Sprintf("it has at least %d characters", *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Sprintf("it has at most %d characters", *s.MaxLength)
	}
	if s.Pattern != "" {
		// Patterns are JavaScript's; those that Go cannot read the agent checks.
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(text) {
			return "it has to match " + safetext.Line(s.Pattern, 200)
		}
	}
	return ""
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
