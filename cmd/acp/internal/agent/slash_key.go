package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goacp/acp"
	"github.com/goacp/acp/acpv2"
	"github.com/goacp/acp/cmd/acp/internal/agent/prose"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// The fields of the form that asks for a key.
const (
	fieldProvider = "provider"
	fieldKey      = "key"
)

// formatSecret is the format of a text that is not shown while it is typed. The schema has
// no such format; clients that do not know it ignore it.
const formatSecret acpv2.StringFormat = "password"

// runKey carries out /key: the user types the key of a provider into a form, so that it
// becomes no part of the conversation. It is kept in memory as long as the connection is.
func runKey(k *task) error {
	var names []string
	services := map[string]model.Service{}
	if models := k.s.agent.modelsOf(k.s.acp.Conn()); models != nil {
		for _, s := range models.Services() {
			if len(s.Speaks) > 0 && s.URL != "" && !s.Local {
				names = append(names, s.Name)
				services[s.Name] = s
			}
		}
	}
	name := strings.TrimSpace(k.rest)
	switch {
	case len(names) == 0:
		k.say("This agent uses no provider that needs a key.")
		return nil
	case strings.ContainsAny(name, " \t\n"):
		return misusef("only the name of a provider may follow; the key is asked for, so that it does not become a part of the conversation")
	case name != "" && !slices.Contains(names, name):
		return misusef("there is no provider %s; there are %s", prose.Inline(prose.OneLine(name, 40)), strings.Join(names, ", "))
	}
	length := uint32(4000)
	form := acp.ElicitationSchema{Required: []string{fieldKey}, Properties: []acp.ElicitationProperty{{
		Name: fieldKey, Schema: &acpv2.StringPropertySchema{Title: "Key", Description: "Kept in memory until this agent ends, and sent to this provider only", Format: formatSecret, MaxLength: &length},
	}}}
	ask := "Your key for " + name
	if name == "" {
		ask = "Your key for a provider of language models"
		choose := acp.ElicitationProperty{Name: fieldProvider, Schema: &acpv2.StringPropertySchema{Title: "Provider", Enum: names}}
		form.Properties = append([]acp.ElicitationProperty{choose}, form.Properties...)
		form.Required = append(form.Required, fieldProvider)
	}
	got, err := k.out.WithContext(k.ctx).Elicit(acp.FormRequest{Message: ask, Schema: form})
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return errors.New("your client has no forms, so a key cannot be typed here; set it in the environment of the agent, or see `acp models`")
	case err != nil:
		return err
	case !got.Accepted:
		k.say("Nothing was changed.")
		return nil
	}
	var key string
	if json.Unmarshal(got.Content[fieldKey], &key) != nil || strings.TrimSpace(key) == "" {
		return errors.New("the key is empty; nothing was changed")
	}
	if name == "" {
		if json.Unmarshal(got.Content[fieldProvider], &name) != nil || services[name].Name == "" {
			return errors.New("the provider is missing; nothing was changed")
		}
	}
	s := services[name]
	s.Speaks, s.Enabled = s.Speaks[:1], true
	s.Header = map[string]string{"Authorization": "Bearer " + strings.TrimSpace(key)}
	if s.Speaks[0] == string(acpv2.LLMProtocolAnthropic) {
		s.Header = map[string]string{"X-Api-Key": strings.TrimSpace(key)}
	}
	if err := k.s.agent.provide(k.s.acp.Conn(), s); err != nil {
		return err
	}
	said := fmt.Sprintf("The key for %s is kept in memory until this agent ends.", name)
	if m := k.s.find(k.ctx); m != nil {
		said += fmt.Sprintf(" This session uses %s.", prose.Inline(nameOf(m.Info())))
	}
	k.say(said)
	return nil
}
