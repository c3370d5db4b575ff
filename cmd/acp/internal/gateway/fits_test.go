package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
)

// TestMisfit: answers are held to what the form says of its fields.
func TestMisfit(t *testing.T) {
	form := acp.ElicitationSchema{
		Required: []string{"name"},
		Properties: []acpv2.ElicitationProperty{
			{Name: "name", Schema: &acpv2.StringPropertySchema{MinLength: new(uint32(2)), MaxLength: new(uint32(3)), Pattern: "^[a-z]+$"}},
			{Name: "color", Schema: &acpv2.StringPropertySchema{Enum: []string{"red"}, OneOf: []acpv2.EnumOption{{Const: "blue"}}}},
			{Name: "n", Schema: &acpv2.IntegerPropertySchema{Minimum: new(int64(1)), Maximum: new(int64(5))}},
			{Name: "x", Schema: &acpv2.NumberPropertySchema{Minimum: new(0.5), Maximum: new(1.5)}},
			{Name: "ok", Schema: &acpv2.BooleanPropertySchema{}},
			{Name: "all", Schema: &acpv2.MultiSelectPropertySchema{MinItems: new(uint64(1)), MaxItems: new(uint64(2)), Items: &acpv2.StringMultiSelectItems{Enum: []string{"a", "b", "c"}}}},
		},
	}
	for content, want := range map[string]string{
		`{"name":"ann"}`: "",
		`{"name":"ann","color":"blue","n":5,"x":1,"ok":true,"all":["a","b"],"more":1}`: "",
		`{}`:                                 "name is missing",
		`{"name":null}`:                      "name is missing",
		`{"name":"a"}`:                       "name must have at least 2 characters",
		`{"name":"anna"}`:                    "name must have at most 3 characters",
		`{"name":"ANN"}`:                     "name must match ^[a-z]+$",
		`{"name":1}`:                         "name must be a text",
		`{"name":"ann","color":"x"}`:         "color is not one of the choices",
		`{"name":"ann","n":99}`:              "n must be at most 5",
		`{"name":"ann","n":0}`:               "n must be at least 1",
		`{"name":"ann","n":1.5}`:             "n must be a whole number",
		`{"name":"ann","n":"1"}`:             "n must be a whole number",
		`{"name":"ann","x":0}`:               "x must be at least 0.5",
		`{"name":"ann","x":2}`:               "x must be at most 1.5",
		`{"name":"ann","ok":"yes"}`:          "ok must be true or false",
		`{"name":"ann","all":"a"}`:           "all must be a list of choices",
		`{"name":"ann","all":[]}`:            "all needs at least 1 choices",
		`{"name":"ann","all":["d"]}`:         "all has what is not one of the choices",
		`{"name":"ann","all":["a","b","c"]}`: "all takes at most 2 choices",
	} {
		var values map[string]json.RawMessage
		if err := json.Unmarshal([]byte(content), &values); err != nil {
			t.Fatal(err)
		}
		if got := misfit(&form, values); got != want {
			t.Errorf("%s: %q, want %q", content, got, want)
		}
	}
}

// TestRefused: an answer that does not fit the form decides nothing; the client is told why, and asked again.
func TestRefused(t *testing.T) {
	r := newRig(t, nil)
	r.agent = inquiring(r)
	answers := []map[string]json.RawMessage{{"name": json.RawMessage("1")}, {"name": json.RawMessage(`"ann"`)}}
	c := r.connect(2, func(cl *acp.Client) {
		cl.Elicit = func(context.Context, *acp.ElicitationRequest) (*acp.ElicitationResponse, error) {
			next := answers[0]
			answers = answers[1:]
			return acp.AcceptElicitation(next), nil
		}
	})
	say(t, c.new(t), "one")
	got := strings.Join(c.seen.until(t, "end: end_turn"), "|")
	if !strings.Contains(got, "notice: The answer was refused.") || !strings.Contains(got, `true false "ann"`) {
		t.Error(got)
	}
}
