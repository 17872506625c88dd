package account

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewWorkspace is a request for a workspace.
type NewWorkspace struct {
	Name, CompanyName  string
	ConnectPartnerName string
	Sandbox            bool
	Webviews           WebviewLook
	// Account returns an account to connect in the same transaction. nil connects none.
	Account func(workspace uuid.UUID) (NewAccount, error)
}

// AddWorkspace creates a workspace and lets the credential of p enter it. The server itself has no credential
// and creates one that no credential may enter yet, and so does an operator. It fails with Invalid, also where the
// credential may enter the maximum already.
func (s *Service) AddWorkspace(ctx context.Context, p domain.Principal, n NewWorkspace) (w Workspace, err error) {
	if err := domain.All(
		domain.CheckLabel("name", n.Name),
		domain.CheckText("company_name", n.CompanyName),
		domain.CheckText("connect_partner_name", n.ConnectPartnerName),
	); err != nil {
		return w, err
	}
	id := domain.NewID()
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := s.roomForWorkspace(ctx, tx, p); err != nil {
			return err
		}
		if err := tx.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{
			WorkspaceID:                 id,
			Name:                        n.Name,
			CompanyName:                 cmp.Or(n.CompanyName, n.ConnectPartnerName),
			ConnectPartnerName:          domain.NonEmpty(n.ConnectPartnerName),
			IsSandbox:                   n.Sandbox,
			ConnectWebviewCustomization: domain.MustJSON(n.Webviews),
			CreatedBy:                   p.CredentialID,
		}); err != nil {
			return err
		}
		if hasWorkspaceList(p) {
			if err := s.auth.GrantWorkspace(ctx, tx, p.CredentialID, id); err != nil {
				return err
			}
		}
		if n.Account != nil {
			account, err := n.Account(id)
			if err != nil {
				return err
			}
			if err := s.Connect(ctx, tx, domain.NewID(), account); err != nil {
				return err
			}
		}
		r, err := tx.GetWorkspace(ctx, id)
		w = toWorkspace(r.Workspace, r.PublishableKey)
		return err
	})
	return w, domain.Wrap(err, "create a workspace")
}

// hasWorkspaceList reports whether p is a credential that may enter certain workspaces. The server itself may enter
// all, and the roles of an operator say which ones.
func hasWorkspaceList(p domain.Principal) bool {
	return p.CredentialID != uuid.Nil && p.Kind != domain.OperatorAccount
}

// roomForWorkspace fails with Invalid where the credential may enter the maximum number of workspaces.
// Concurrent requests may exceed it slightly.
func (s *Service) roomForWorkspace(ctx context.Context, tx store.Tx, p domain.Principal) error {
	if !hasWorkspaceList(p) {
		return nil
	}
	most := s.opt.MaxWorkspaces
	n, err := tx.CountWorkspacesOfCredential(
		ctx,
		dbsqlc.CountWorkspacesOfCredentialParams{CredentialID: p.CredentialID, MaxRows: int32(min(most, 1<<30))},
	)
	if err == nil && int(n) >= most {
		return domain.Invalidf(
			"",
			"This token cannot create more workspaces: it may enter %d already, which is the maximum. Use one "+
				"of those that /workspaces/list shows; "+
				"/workspaces/reset_sandbox empties a sandbox",
			most,
		)
	}
	return err
}

// WorkspaceChange is a change of a workspace. nil and zero fields stay.
type WorkspaceChange struct {
	Name               string
	ConnectPartnerName string
	Webviews           WebviewLook
	PublishableKeys    *bool
	Suspended          *bool
}

// UpdateWorkspace changes the workspace of p. While the workspace is suspended the server sends nothing to its
// webhooks. Afterwards it sends the pending deliveries that are within the retention. It fails with Invalid.
func (s *Service) UpdateWorkspace(ctx context.Context, p domain.Principal, c WorkspaceChange) error {
	if c.Name != "" {
		if err := domain.CheckLabel("name", c.Name); err != nil {
			return err
		}
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		var hooks []uuid.UUID
		if c.Suspended != nil { // lock order: before the workspace, as the rotation of a secret
			var err error
			if hooks, err = tx.LockWebhooksOfWorkspace(ctx, p.WorkspaceID); err != nil {
				return err
			}
		}
		r, err := tx.LockWorkspace(ctx, p.WorkspaceID)
		if err != nil {
			return err
		}
		look := toWorkspace(r, nil).Webviews
		look = WebviewLook{
			LogoShape:              cmp.Or(c.Webviews.LogoShape, look.LogoShape),
			PrimaryButtonColor:     cmp.Or(c.Webviews.PrimaryButtonColor, look.PrimaryButtonColor),
			PrimaryButtonTextColor: cmp.Or(c.Webviews.PrimaryButtonTextColor, look.PrimaryButtonTextColor),
			SuccessMessage:         cmp.Or(c.Webviews.SuccessMessage, look.SuccessMessage),
		}
		suspended := *cmp.Or(c.Suspended, &r.IsSuspended)
		if err := tx.UpdateWorkspace(ctx, dbsqlc.UpdateWorkspaceParams{
			WorkspaceID:                 r.WorkspaceID,
			Name:                        cmp.Or(c.Name, r.Name),
			ConnectPartnerName:          cmp.Or(domain.NonEmpty(c.ConnectPartnerName), r.ConnectPartnerName),
			IsSuspended:                 suspended,
			IsPublishableKeyAuthEnabled: *cmp.Or(c.PublishableKeys, &r.IsPublishableKeyAuthEnabled),
			ConnectWebviewCustomization: domain.MustJSON(look),
		}); err != nil {
			return err
		}
		switch {
		case suspended == r.IsSuspended:
			return nil
		case suspended:
			return tx.RestWebhooks(ctx, r.WorkspaceID)
		}
		_, err = s.webhooks.WakeEndpoints(ctx, tx, r.WorkspaceID, hooks)
		return err
	})
	return domain.Wrap(err, "change the workspace")
}
