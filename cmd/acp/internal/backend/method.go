package backend

import (
	"encoding/json"
	"fmt"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/safetext"
)

// A MethodKind says what a login requires.
type MethodKind string

// The kinds of ways to log in.
const (
	MethodAgent    MethodKind = "agent"    // the agent does it when asked, perhaps with a browser
	MethodTerminal MethodKind = "terminal" // the user runs a program in a terminal
	MethodEnv      MethodKind = "env_var"  // variables must be in the agent's environment
	MethodOther    MethodKind = "other"    // not known to this program
)

// A Method is a way to log in, in one form for all kinds and versions.
type Method struct {
	ID          acp.AuthMethodID
	Kind        MethodKind
	Name        string
	Description string
	Vars        []EnvVar // that must be set, of MethodEnv
	Link        string   // where to get their values, or ""
}

// An EnvVar is a variable that a login needs.
type EnvVar struct {
	Name     string `json:"name"`
	Label    string `json:"label"`
	Secret   *bool  `json:"secret"`
	Optional bool   `json:"optional"`
}

// Describe reads a login method of either version. One without an id can only be shown.
func Describe(m acp.AuthMethod) Method {
	switch m := m.(type) {
	case *acp.AuthMethodAgent:
		return Method{ID: m.MethodID, Kind: MethodAgent, Name: m.Name, Description: m.Description}
	case *acp.AuthMethodTerminal:
		return Method{ID: m.MethodID, Kind: MethodTerminal, Name: m.Name, Description: m.Description}
	case *acpv2.UnknownAuthMethod:
		var raw struct {
			ID          acp.AuthMethodID `json:"methodId"`
			Name        string           `json:"name"`
			Description string           `json:"description"`
			Vars        []EnvVar         `json:"vars"`
			VarName     string           `json:"varName"`
			Link        string           `json:"link"`
		}
		if json.Unmarshal(m.Raw, &raw) != nil {
			return Method{Kind: MethodOther, Name: m.Type}
		}
		d := Method{ID: raw.ID, Kind: MethodOther, Name: raw.Name, Description: raw.Description, Link: raw.Link}
		if m.Type == string(MethodEnv) {
			d.Kind, d.Vars = MethodEnv, raw.Vars
			if raw.VarName != "" && len(d.Vars) == 0 {
				d.Vars = []EnvVar{{Name: raw.VarName}}
			}
		}
		return d
	}
	return Method{Kind: MethodOther}
}

// label names a login method for people.
func (d Method) label() string {
	name := safetext.Line(d.Name, 60)
	id := safetext.Line(string(d.ID), 60)
	switch {
	case id == "":
		return name
	case name == "" || name == id:
		return id
	}
	return fmt.Sprintf("%s (%s)", id, name)
}
