package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goacp/acp/cmd/acp/internal/agent/tool"
	"github.com/goacp/acp/cmd/acp/internal/model"
)

// A modelTool is a tool as a model uses it. Tools of MCP servers whose schema cannot be
// used have none: the server looks at what it gets.
type modelTool struct {
	tool.Tool
	schema *jsonschema.Resolved
	mcp    bool   // of an MCP server
	finds  bool   // it finds or uses those that are not listed
	server string // which one
}

// check says what is wrong with an input.
func (t *modelTool) check(input json.RawMessage) error {
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return errors.New("the input is not JSON; write it again")
	}
	if t.schema == nil {
		if _, ok := value.(map[string]any); !ok {
			return fmt.Errorf("the input of %s is not an object", t.Name)
		}
		return nil
	}
	err := t.schema.Validate(value)
	if err == nil {
		return nil
	}
	if why := tool.Wrong(t.Tool, input); why != "" {
		return fmt.Errorf("the input does not fit the schema of %s: %s", t.Name, why)
	}
	why := strings.ReplaceAll(err.Error(), "<invalid reflect.Value>", "null")
	return fmt.Errorf("the input does not fit the schema of %s: %s", t.Name, why)
}

// read returns an input in the form that the tool takes, or says what is wrong with it.
func (t *modelTool) read(u *model.ToolUse) (json.RawMessage, error) {
	err := t.check(u.Input)
	if err == nil && !u.Malformed {
		return u.Input, nil
	}
	if mended := tool.Mend(t.Tool, u.Input); !bytes.Equal(mended, u.Input) {
		if err = t.check(mended); err == nil {
			return mended, nil
		}
	}
	if u.Malformed {
		return nil, errors.New("the input is not JSON: write it again, with quotes and line ends in its texts escaped")
	}
	return nil, err
}

// resolve returns a schema that inputs are checked with.
func resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

// modelTools returns the tools with their schemas, which take some milliseconds: programs
// whose agent has no model need none. It panics if a schema is wrong, which a test of
// package tool rules out.
var modelTools = sync.OnceValue(func() []modelTool {
	var all []modelTool
	for _, t := range append(tool.All(), tool.Patch) {
		resolved, err := resolve(t.Schema)
		if err != nil {
			panic(err)
		}
		all = append(all, modelTool{Tool: t, schema: resolved})
	}
	return all
})

// described returns tools as a model gets them that was trained on a form of changes.
func described(tools []modelTool, format model.EditFormat) []model.Tool {
	left := tool.Patch.Name
	if format == model.EditPatch {
		left = tool.Edit.Name
	}
	var all []model.Tool
	for _, t := range tools {
		if t.Name != left {
			all = append(all, model.Tool{Name: t.Name, Description: t.About, Schema: t.Schema, Text: (*model.TextForm)(t.Text)})
		}
	}
	return all
}
