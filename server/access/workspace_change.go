package access

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewWorkspace asks for a workspace.
type NewWorkspace struct {
	Name, CompanyName  string
	ConnectPartnerName string
	Sandbox            bool
	Webviews           WebviewLook
	Account            func(workspace uuid.UUID) (NewAccount, error) // connected at once; nil: none
}

// AddWorkspace makes a workspace that the credential of p may enter from then on; the server itself, which has none, makes
// one that nobody may enter yet. It fails with Invalid, also where the credential may enter as many as one that makes them.
func (s *Service) AddWorkspace(ctx context.Context, p Principal, n NewWorkspace) (w Workspace, err error) {
	if err := all(checkLabel("name", n.Name), checkText("company_name", n.CompanyName), checkText("connect_partner_name", n.ConnectPartnerName)); err != nil {
		return w, err
	}
	id := newID()
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		if err := s.roomForWorkspace(ctx, tx, p); err != nil {
			return err
		}
		if err := tx.InsertWorkspace(ctx, dbsqlc.InsertWorkspaceParams{WorkspaceID: id, Name: n.Name, CompanyName: cmp.Or(n.CompanyName, n.ConnectPartnerName),
			ConnectPartnerName: nonEmpty(n.ConnectPartnerName), IsSandbox: n.Sandbox, ConnectWebviewCustomization: mustJSON(n.Webviews), CreatedBy: p.CredentialID}); err != nil {
			return err
		}
		if p.CredentialID != uuid.Nil {
			if err := tx.InsertCredentialWorkspace(ctx, dbsqlc.InsertCredentialWorkspaceParams{CredentialID: p.CredentialID, WorkspaceID: id}); err != nil {
				return err
			}
		}
		if n.Account != nil {
			account, err := n.Account(id)
			if err != nil {
				return err
			}
			if err := s.connect(ctx, tx, newID(), account); err != nil {
				return err
			}
		}
		r, err := tx.GetWorkspace(ctx, id)
		w = toWorkspace(r.Workspace, r.PublishableKey)
		return err
	})
	return w, named(err, "create a workspace")
}

// roomForWorkspace fails with Invalid where a credential may enter as many workspaces as one that makes them. Requests that come at
// the same moment may make a few more.
func (s *Service) roomForWorkspace(ctx context.Context, tx store.Tx, p Principal) error {
	if p.CredentialID == uuid.Nil {
		return nil
	}
	most := s.opt.MostWorkspaces
	n, err := tx.CountWorkspacesOfCredential(ctx, dbsqlc.CountWorkspacesOfCredentialParams{CredentialID: p.CredentialID, MaxRows: int32(min(most, 1<<30))})
	if err == nil && int(n) >= most {
		return invalid("", "No more workspaces can be made with this token: it may enter %d workspaces already. Use one of them, which /workspaces/list shows; "+
			"/workspaces/reset_sandbox empties one that is a sandbox", most)
	}
	return err
}

// WorkspaceChange says what is to change; nil and zero fields stay.
type WorkspaceChange struct {
	Name               string
	ConnectPartnerName string
	Webviews           WebviewLook
	PublishableKeys    *bool
	Suspended          *bool
}

// UpdateWorkspace changes the workspace of p. While it is suspended nothing is sent to its webhooks; what waits then is
// sent when it no longer is, unless it is older than what is kept. It fails with Invalid.
func (s *Service) UpdateWorkspace(ctx context.Context, p Principal, c WorkspaceChange) error {
	if c.Name != "" {
		if err := checkLabel("name", c.Name); err != nil {
			return err
		}
	}
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		var hooks []uuid.UUID
		if c.Suspended != nil { // before the workspace, as whoever rotates a secret
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
		look = WebviewLook{LogoShape: cmp.Or(c.Webviews.LogoShape, look.LogoShape), PrimaryButtonColor: cmp.Or(c.Webviews.PrimaryButtonColor, look.PrimaryButtonColor),
			PrimaryButtonTextColor: cmp.Or(c.Webviews.PrimaryButtonTextColor, look.PrimaryButtonTextColor), SuccessMessage: cmp.Or(c.Webviews.SuccessMessage, look.SuccessMessage)}
		suspended := *cmp.Or(c.Suspended, &r.IsSuspended)
		if err := tx.UpdateWorkspace(ctx, dbsqlc.UpdateWorkspaceParams{WorkspaceID: r.WorkspaceID, Name: cmp.Or(c.Name, r.Name),
			ConnectPartnerName: cmp.Or(nonEmpty(c.ConnectPartnerName), r.ConnectPartnerName), IsSuspended: suspended,
			IsPublishableKeyAuthEnabled: *cmp.Or(c.PublishableKeys, &r.IsPublishableKeyAuthEnabled), ConnectWebviewCustomization: mustJSON(look)}); err != nil {
			return err
		}
		switch {
		case suspended == r.IsSuspended:
			return nil
		case suspended:
			return tx.RestWebhooks(ctx, r.WorkspaceID)
		}
		_, err = s.wakeWebhooks(ctx, tx, r.WorkspaceID, hooks)
		return err
	})
	return named(err, "change the workspace")
}

// ResetSandbox begins anew in a sandbox workspace: what is in it is erased, but not its credentials and webhooks, and
// an account is connected instead of those that it had. Forget is told of these once they are gone for good. The
// attempt ends when the devices of the new account are there, or fails when they are not in time. It fails with Invalid (workspace_not_sandbox).
//
// Whoever works on a device or an account holds its row while he writes, so nothing of what is erased is written again
// later: what is under way ends before, or finds nothing.
func (s *Service) ResetSandbox(ctx context.Context, p Principal, anew NewAccount, forget func(context.Context, []Account)) (a Attempt, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		w, err := tx.LockWorkspace(ctx, p.WorkspaceID)
		if err != nil {
			return err
		}
		if !w.IsSandbox {
			return &Error{Kind: Invalid, Type: "workspace_not_sandbox", Message: "Only a sandbox workspace can be reset; the devices of this one are real."}
		}
		rows, err := tx.LockAccountsOfWorkspace(ctx, p.WorkspaceID)
		if err != nil {
			return err
		}
		accounts, ids := make([]Account, len(rows)), make([]uuid.UUID, len(rows))
		for i, r := range rows {
			if accounts[i], err = s.toAccount(r); err != nil {
				return err
			}
			ids[i] = r.ConnectedAccountID
		}
		if err := tx.LockDevicesOfAccounts(ctx, ids); err != nil {
			return err
		}
		for _, erase := range []func(context.Context, uuid.UUID) error{tx.EraseWorkspace, tx.EraseDeliveries, tx.EraseDeliveryAttempts} {
			if err := erase(ctx, p.WorkspaceID); err != nil {
				return err
			}
		}
		r, err := tx.InsertWorkspaceAttempt(ctx, dbsqlc.InsertWorkspaceAttemptParams{ActionAttemptID: newID(), WorkspaceID: p.WorkspaceID,
			ActionType: ResetSandboxWorkspace, Patience: s.opt.AttemptPatience})
		if err != nil {
			return err
		}
		tx.Begins()
		if err := tx.HastenRetention(ctx, dbsqlc.HastenRetentionParams{WorkspaceID: p.WorkspaceID, At: r.DeadlineAt}); err != nil { // it ends by then
			return err
		}
		a = toAttempt(r)
		tx.Then(func() { forget(context.WithoutCancel(ctx), accounts) })
		for _, old := range accounts { // so that whoever has an adapter open for it closes that
			if err := s.waker.Wake(ctx, tx, AccountLane, old.ID); err != nil {
				return err
			}
		}
		return s.connect(ctx, tx, newID(), anew)
	})
	return a, named(err, "reset the sandbox workspace")
}
