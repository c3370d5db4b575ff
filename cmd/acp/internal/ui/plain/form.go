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
	"github.com/goacp/acp/cmd/acp/internal/shown"
)

// elicit is [backend.Frontend]'s Elicit. The user answers the fields of a form one after another,
// or confirms that they will visit a URL.
func (c *conversation) elicit(ctx context.Context, _ *backend.Session, req *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
	lines := []string{"The agent asks: " + safetext.VisibleCode(strings.TrimSpace(req.Message))}
	if shown.Async(req.Meta) {
		lines = append(lines, "  "+shown.WorksOn)
	}
	if req.Form == nil {
		lines = append(lines, "  It asks you to visit: "+safetext.VisibleLine(req.URL, 1<<16), "  Type y to accept, n to decline, or press Enter to dismiss.")
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
			lines = []string{"Type y or n, or press Enter."}
		}
	}
	lines = append(lines, "  Press Enter to use the value in brackets, or to leave a field empty. Type /decline to decline, or /dismiss to dismiss the questions.")
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
			lines = []string{"  Not accepted: " + problem + "."}
		}
		lines = nil
	}
	return acp.AcceptElicitation(values), nil
}

// A field is a field of a form, asked on lines of text.
type field struct {
	lines  []string
	prompt string
	value  reading
}

// A reading parses an answer. It returns the value, or nil to leave the field empty. problem says
// what is wrong with the answer, or is "".
type reading = func(line string) (_ json.RawMessage, problem string)

// A fieldForm is the part of a field that depends on its type.
type fieldForm struct {
	title, what, def string
	options          []acpv2.EnumOption
	value            reading
}

// newField returns the dialog for one property of a form.
func newField(p acpv2.ElicitationProperty, required bool) (f field) {
	empty := func(string) (json.RawMessage, string) {
		if required {
			return nil, "a value is required"
		}
		return nil, ""
	}
	form := formOf(p.Schema, empty)
	if form.title == "" {
		form.title = p.Name
	}
	if what := safetext.VisibleLine(form.what, 500); what != "" {
		f.lines = []string{"  " + what}
	}
	f.lines = append(f.lines, choices(form.options)...)
	f.prompt = safetext.VisibleLine(form.title, maxTitle)
	if form.def != "" {
		f.prompt += " [" + safetext.VisibleLine(form.def, maxTitle) + "]"
	} else if required {
		f.prompt += " (required)"
	}
	f.prompt += ": "
	f.value = form.value
	return f
}

// formOf returns the form of a field. empty handles an empty answer to a field without a default.
func formOf(s acpv2.ElicitationPropertySchema, empty reading) fieldForm {
	switch s := s.(type) {
	case *acpv2.StringPropertySchema:
		return textForm(s, empty)
	case *acpv2.NumberPropertySchema:
		return numberForm(s, empty)
	case *acpv2.IntegerPropertySchema:
		return integerForm(s, empty)
	case *acpv2.BooleanPropertySchema:
		return booleanForm(s)
	case *acpv2.MultiSelectPropertySchema:
		return severalForm(s, empty)
	}
	return fieldForm{value: func(line string) (json.RawMessage, string) {
		if line != "" {
			return nil, "this program does not know this kind of field"
		}
		return empty(line)
	}}
}

// textForm asks for a text, or for one of some options.
func textForm(s *acpv2.StringPropertySchema, empty reading) fieldForm {
	options := append(slices.Clone(s.OneOf), plainOptions(s.Enum)...)
	def := ""
	if s.Default != nil {
		def = *s.Default
	}
	return fieldForm{title: s.Title, what: s.Description, def: def, options: options, value: func(line string) (json.RawMessage, string) {
		if line == "" {
			line = def
		}
		if line == "" {
			return empty(line)
		}
		if len(options) > 0 {
			i, ok := pick(options, line)
			if !ok {
				return nil, "that is not one of the choices"
			}
			return encode(options[i].Const), ""
		}
		return encode(line), textProblem(s, line)
	}}
}

// numberForm asks for a number within bounds.
func numberForm(s *acpv2.NumberPropertySchema, empty reading) fieldForm {
	def := ""
	if s.Default != nil {
		def = strconv.FormatFloat(*s.Default, 'g', -1, 64)
	}
	return fieldForm{title: s.Title, what: s.Description, def: def, value: func(line string) (json.RawMessage, string) {
		if line = strings.TrimSpace(line); line == "" {
			line = def
		}
		if line == "" {
			return empty(line)
		}
		n, err := strconv.ParseFloat(line, 64)
		switch {
		case err != nil || math.IsInf(n, 0) || math.IsNaN(n):
			return nil, "that is not a number"
		case s.Minimum != nil && n < *s.Minimum:
			return nil, fmt.Sprintf("the minimum is %v", *s.Minimum)
		case s.Maximum != nil && n > *s.Maximum:
			return nil, fmt.Sprintf("the maximum is %v", *s.Maximum)
		}
		return encode(n), ""
	}}
}

// integerForm asks for a whole number within bounds.
func integerForm(s *acpv2.IntegerPropertySchema, empty reading) fieldForm {
	def := ""
	if s.Default != nil {
		def = strconv.FormatInt(*s.Default, 10)
	}
	return fieldForm{title: s.Title, what: s.Description, def: def, value: func(line string) (json.RawMessage, string) {
		if line = strings.TrimSpace(line); line == "" {
			line = def
		}
		if line == "" {
			return empty(line)
		}
		n, err := strconv.ParseInt(line, 10, 64)
		switch {
		case err != nil:
			return nil, "that is not a whole number"
		case s.Minimum != nil && n < *s.Minimum:
			return nil, fmt.Sprintf("the minimum is %d", *s.Minimum)
		case s.Maximum != nil && n > *s.Maximum:
			return nil, fmt.Sprintf("the maximum is %d", *s.Maximum)
		}
		return encode(n), ""
	}}
}

// booleanForm asks for yes or no.
func booleanForm(s *acpv2.BooleanPropertySchema) fieldForm {
	def := "n"
	if s.Default != nil && *s.Default {
		def = "y"
	}
	return fieldForm{title: s.Title, what: s.Description + " (y or n)", def: def, value: func(line string) (json.RawMessage, string) {
		if line = strings.ToLower(strings.TrimSpace(line)); line == "" {
			line = def
		}
		switch line {
		case "y", "yes", "true":
			return encode(true), ""
		case "n", "no", "false":
			return encode(false), ""
		}
		return nil, "the answer must be y or n"
	}}
}

// severalForm asks for several of some options.
func severalForm(s *acpv2.MultiSelectPropertySchema, empty reading) fieldForm {
	var options []acpv2.EnumOption
	switch items := s.Items.(type) {
	case *acpv2.StringMultiSelectItems:
		options = plainOptions(items.Enum)
	case *acpv2.TitledMultiSelectItems:
		options = items.AnyOf
	}
	return fieldForm{
		title: s.Title, what: s.Description + " (separate several with commas)", def: strings.Join(s.Default, ", "), options: options,
		value: func(line string) (json.RawMessage, string) { return several(s, options, line, empty) },
	}
}

// plainOptions returns values as options without titles.
func plainOptions(values []string) (options []acpv2.EnumOption) {
	for _, v := range values {
		options = append(options, acpv2.EnumOption{Const: v})
	}
	return options
}

// several parses an answer to a field with several choices.
func several(s *acpv2.MultiSelectPropertySchema, options []acpv2.EnumOption, line string, empty reading) (json.RawMessage, string) {
	all := slices.Clone(s.Default)
	if line = strings.TrimSpace(line); line != "" {
		all = nil
		for word := range strings.SplitSeq(line, ",") {
			i, ok := pick(options, strings.TrimSpace(word))
			if !ok {
				return nil, "that is not one of the choices"
			}
			if !slices.Contains(all, options[i].Const) {
				all = append(all, options[i].Const)
			}
		}
	}
	n := uint64(len(all))
	switch {
	case n == 0:
		return empty(line)
	case s.MinItems != nil && n < *s.MinItems:
		return nil, fmt.Sprintf("choose at least %d", *s.MinItems)
	case s.MaxItems != nil && n > *s.MaxItems:
		return nil, fmt.Sprintf("choose at most %d", *s.MaxItems)
	}
	return encode(all), ""
}

// choices lists options, numbered from 1.
func choices(options []acpv2.EnumOption) (lines []string) {
	for i, o := range options {
		name := safetext.VisibleLine(o.Title, maxTitle)
		if name == "" {
			name = safetext.VisibleLine(o.Const, maxTitle)
		}
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, name))
	}
	return lines
}

// pick returns the index of the option that a number or a value names. A value takes precedence,
// because values may be numbers.
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
		return fmt.Sprintf("the minimum is %d characters", *s.MinLength)
	case s.MaxLength != nil && n > *s.MaxLength:
		return fmt.Sprintf("the maximum is %d characters", *s.MaxLength)
	}
	if s.Pattern != "" {
		// Patterns are JavaScript's. A pattern that Go cannot compile is left to the agent.
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(text) {
			return "it must match " + safetext.Line(s.Pattern, 200)
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
