package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestVocabulary holds what go doc says of the names in package acp.
func TestVocabulary(t *testing.T) {
	files, err := generate(filepath.Join("..", "..", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	all := string(files["vocabulary_update_gen.go"]) + string(files["vocabulary_session_gen.go"]) + string(files["vocabulary_values_gen.go"])
	for _, want := range []string{
		"\t// PlanEntry is one step of a plan.",                              // the sentence of the schema's type
		"\t//\t\tPriority      PlanEntryPriority // How much the step",       // its fields
		"\t//\t\tIcons         []acpv2.Icon  ",                               // a type that has no name here
		"\t// It is one of *[TextContent], *[ImageContent]",                  // the variants of a union
		"\t// Its values are [StopEndTurn], ",                                // the values of an enum, by their names here
		"\tSlashCommand = acpv2.Command\n",                                   // another name
		"\t//\ttype SlashCommand struct {\n",                                 // also in its own text
		"\tStopEndTurn = acpv2.StopReasonEndTurn\n",                          // a value
		"\tSessionConfigSelectOptionList = acpv2.SessionConfigSelectOptionL", // what is no definition
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the vocabulary lacks %q", want)
		}
	}
}

// TestVocabularyErrors holds that entries that cannot be right are refused.
func TestVocabularyErrors(t *testing.T) {
	old := vocabulary
	defer func() { vocabulary = old }()
	for want, names := range map[string][]string{
		"acpv2 has no type Nothing":          {"Nothing"},
		"SessionID is listed twice":          {"SessionID", "SessionID"},
		"has another name but is not listed": {"SessionID"},
	} {
		vocabulary = []topic{{"x", "Topic.", names}}
		if _, err := generate(filepath.Join("..", "..", "schema")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", names, err, want)
		}
	}
}
