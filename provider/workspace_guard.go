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

// With a key of another workspace, everything looks deleted. So each resource stores its workspace in its private
// state, and stays in the state if the key belongs to another workspace. This works without the setting workspace_id,
// and costs a request only if the server does not know a resource.

// workspaceKey is the key of the private state under which a resource stores its workspace.
const workspaceKey = "workspace"

// privateState is short for the private state of a resource.
type privateState = planmodifiers.PrivateState

// workspaceCache caches the workspace of the key.
type workspaceCache struct {
	mu        sync.Mutex
	workspace *api.Workspace
}

// workspace returns the workspace of the key. It asks the server once.
func (c *connection) workspace(ctx context.Context) (*api.Workspace, error) {
	c.workspaceOfKey.mu.Lock()
	defer c.workspaceOfKey.mu.Unlock()
	if c.workspaceOfKey.workspace == nil {
		answer, err := api.Call[api.WorkspaceResponse](ctx, c.api.GetWorkspace, api.EmptyRequest{})
		if err == nil {
			err = hasID("workspace", answer.Workspace.WorkspaceID)
		}
		if err != nil {
			return nil, err
		}
		c.workspaceOfKey.workspace = &answer.Workspace
	}
	return c.workspaceOfKey.workspace, nil
}

// rememberWorkspace stores the workspace of a resource. An empty id means the workspace of the key. If the server
// does not return that workspace, nothing is stored.
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

// isDeleted reports whether a resource that the server does not know is deleted. It returns false and adds an error
// if the resource may be in another workspace.
//
// If the provider is killed during a change, Terraform keeps no private state. The resource can then be in any
// workspace, unless the setting workspace_id names one. Imports do not call isDeleted: they have no state yet.
func (c *connection) isDeleted(ctx context.Context, private privateState, action string, diags *diag.Diagnostics) bool {
	recorded := recordedWorkspace(ctx, private)
	if recorded == "" && c.workspaceIsNamed {
		return true
	}
	workspace, err := c.workspace(ctx)
	switch {
	case api.IsNoRoute(err), recorded == "" && api.IsDenied(err): // nothing could be recorded
		return true
	case err != nil:
		report(diags, action, fmt.Errorf("the server does not know the resource, and reading the workspace of the "+
			"key failed: %w", err))
		return false
	case strings.EqualFold(workspace.WorkspaceID, recorded):
		return true
	case recorded == "":
		diagnostics.Failure(diags, action, fmt.Sprintf("The server does not know the resource, the API key belongs "+
			"to workspace %s (%s), and the state does not name the workspace of the resource, as after an apply "+
			"during which the provider was killed. Nothing is removed from the state.\n\nIf that is the right "+
			"workspace, set `workspace_id` in the provider block, or %s, to it: resources that it does not have "+
			"then count as deleted. Otherwise use a key of the right "+
			"workspace.", workspace.WorkspaceID, workspace.Name, envWorkspaceID))
		return false
	}
	diagnostics.Failure(diags, action, fmt.Sprintf("The server does not know the resource, but the API key belongs "+
		"to workspace %s (%s), and the resource was in workspace %s. Nothing is removed from the state.\n\nUse a "+
		"key of that workspace. If you have given up the workspace, remove the resource from the state with "+
		"`terraform state rm`.",
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
