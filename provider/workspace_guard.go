package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/diagnostics"
	"github.com/deviceaccess/terraform-provider-deviceaccess/provider/planmodifiers"
)

// With a key of another workspace everything looks deleted. So each resource remembers in its private state the
// workspace that it was seen in, and is not forgotten when the key now belongs to another. It works without the
// setting workspace_id, and costs a request for the workspace only when something is gone.

// workspaceKey is where the private state of a resource keeps its workspace.
const workspaceKey = "workspace"

// privateState is short for the private state of a resource.
type privateState = planmodifiers.PrivateState

// asked is what the server has said about the workspace of the key, once it has.
type asked struct {
	mu        sync.Mutex
	workspace *api.Workspace
}

// workspace is the workspace of the key. The server is asked once.
func (c *connection) workspace(ctx context.Context) (*api.Workspace, error) {
	c.asked.mu.Lock()
	defer c.asked.mu.Unlock()
	if c.asked.workspace == nil {
		answer, err := api.Call[api.WorkspaceResponse](ctx, c.api.GetWorkspace, api.EmptyRequest{})
		if err == nil {
			err = hasID("workspace", answer.Workspace.WorkspaceID)
		}
		if err != nil {
			return nil, err
		}
		c.asked.workspace = &answer.Workspace
	}
	return c.asked.workspace, nil
}

// rememberWorkspace keeps the workspace that a resource was seen in. An object that does not say so itself, with
// id "", is in that of the key; where the server does not tell that, nothing is kept.
func (c *connection) rememberWorkspace(ctx context.Context, private privateState, id string) diag.Diagnostics {
	if kept := recordedWorkspace(ctx, private); kept != "" && (id == "" || id == kept) {
		return nil
	}
	if id == "" {
		workspace, err := c.workspace(ctx)
		if err != nil {
			return nil
		}
		id = workspace.WorkspaceID
	}
	encoded, _ := json.Marshal(id) // strings always encode
	return private.SetKey(ctx, workspaceKey, encoded)
}

// mayForget says whether something that the server does not know is gone, instead of being in a workspace that the
// key does not belong to, which it reports.
//
// Of a provider that is killed during a change Terraform keeps no private state. What is not seen again before it is
// gone can then be in any workspace, unless whoever configures the provider says which one is meant.
// Who imports does not ask: there is no state yet that could say it.
func (c *connection) mayForget(ctx context.Context, private privateState, action string, diags *diag.Diagnostics) bool {
	recorded := recordedWorkspace(ctx, private)
	if recorded == "" && c.workspaceIsNamed {
		return true
	}
	workspace, err := c.workspace(ctx)
	switch {
	case api.IsNoRoute(err), recorded == "" && api.IsDenied(err): // so nothing could be recorded
		return true
	case err != nil:
		report(diags, action, fmt.Errorf("the server does not know it, and which workspace the key belongs to could not be read: %w", err))
		return false
	case strings.EqualFold(workspace.WorkspaceID, recorded):
		return true
	case recorded == "":
		diagnostics.Error(diags, action, fmt.Sprintf("The server does not know it, the API key belongs to workspace %s (%s), and the state does not say in which workspace it was, "+
			"as after an apply during which the provider was killed. Nothing is taken to be deleted.\n\nIf that is the right workspace, set `workspace_id` in the provider block, or %s, "+
			"to it: then what it does not have is gone. Else use a key of the right one.", workspace.WorkspaceID, workspace.Name, envWorkspaceID))
		return false
	}
	diagnostics.Error(diags, action, fmt.Sprintf("The server does not know it, but the API key belongs to workspace %s (%s), and this was in workspace %s. "+
		"Nothing is taken to be deleted.\n\nUse a key of that workspace. If it is given up on purpose, take the resource out of the state with `terraform state rm`.",
		workspace.WorkspaceID, workspace.Name, recorded))
	return false
}

func recordedWorkspace(ctx context.Context, private privateState) string {
	stored, _ := private.GetKey(ctx, workspaceKey)
	var id string
	if json.Unmarshal(stored, &id) != nil {
		return "" // nothing was stored
	}
	return id
}
