package phone

import (
	"context"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/event"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// NewPhone is the specification of a new phone.
type NewPhone struct {
	IdentityID      string // of the person who owns the phone
	InstallationID  string // of the app on the phone; empty: not named
	OperatingSystem string // Android or IOS
	Model           string
	EndpointID      float64
}

// CreatePhone creates a phone of a user identity. If the identity has a phone with the installation, CreatePhone
// returns that phone unchanged, so that clients can retry. It fails with Invalid (workspace_not_sandbox), with
// NotFound (user_identity_not_found), and with Invalid if the identity has MaxPhones.
func (s *Service) CreatePhone(ctx context.Context, p domain.Principal, n NewPhone) (out Phone, err error) {
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		identity, err := lockIdentity(ctx, tx, p, n.IdentityID)
		if err != nil {
			return err
		}
		if n.InstallationID != "" {
			r, err := tx.GetPhoneOfInstallation(ctx, dbsqlc.GetPhoneOfInstallationParams{
				WorkspaceID:             p.WorkspaceID,
				UserIdentityID:          identity,
				CustomSdkInstallationID: n.InstallationID,
			})
			if out = toPhone(r); err == nil || !store.IsNoRows(err) {
				return err
			}
		}
		has, err := tx.CountPhones(
			ctx,
			dbsqlc.CountPhonesParams{WorkspaceID: p.WorkspaceID, UserIdentityID: identity},
		)
		if err != nil {
			return err
		}
		if has >= MaxPhones {
			return domain.Invalidf(
				"user_identity_id",
				"The user identity has %d phones, which is the maximum. Deactivate unused ones with /phones/deactivate",
				has,
			)
		}
		r, err := tx.InsertPhone(ctx, dbsqlc.InsertPhoneParams{
			DeviceID:                domain.NewID(),
			WorkspaceID:             p.WorkspaceID,
			UserIdentityID:          identity,
			CustomSdkInstallationID: domain.NonEmpty(n.InstallationID),
			OperatingSystem:         n.OperatingSystem,
			DeviceModel:             n.Model,
			SeosTsmEndpointID:       n.EndpointID,
		})
		out = toPhone(r)
		return err
	})
	return out, domain.Wrap(err, "create a phone")
}

// lockIdentity locks a user identity of a sandbox workspace, so that its phones are counted and created one at a time.
func lockIdentity(ctx context.Context, tx store.Tx, p domain.Principal, id string) (uuid.UUID, error) {
	w, err := tx.GetWorkspace(ctx, p.WorkspaceID)
	if err != nil {
		return uuid.Nil, err
	}
	if !w.Workspace.IsSandbox {
		return uuid.Nil, &domain.Error{
			Kind:    domain.Invalid,
			Type:    "workspace_not_sandbox",
			Message: "Only a sandbox workspace can have simulated phones. This one is real.",
		}
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return uuid.Nil, identityNotFound(id)
	}
	r, err := tx.LockUserIdentity(
		ctx,
		dbsqlc.LockUserIdentityParams{WorkspaceID: p.WorkspaceID, UserIdentityID: parsed},
	)
	if store.IsNoRows(err) {
		return uuid.Nil, identityNotFound(id)
	}
	return r.UserIdentityID, err // parsed may be that of a merged identity
}

// Deactivate deletes a phone and emits phone.deactivated. A client session can deactivate only the phones of its own
// user identity. It fails with NotFound.
func (s *Service) Deactivate(ctx context.Context, p domain.Principal, id string) error {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return notFound(id)
	}
	arg := dbsqlc.DeletePhoneParams{WorkspaceID: p.WorkspaceID, DeviceID: parsed}
	if p.Kind == domain.EndUser {
		arg.Session = &p.CredentialID
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := tx.DeletePhone(ctx, arg)
		if store.IsNoRows(err) {
			return notFound(id)
		}
		if err != nil {
			return err
		}
		return s.emitDeactivated(ctx, tx, r.WorkspaceID, r.DeviceID)
	})
	return domain.Wrap(err, "deactivate a phone")
}

// DeactivateOf deactivates the phones of a user identity that is being deleted.
func (s *Service) DeactivateOf(ctx context.Context, tx store.Tx, workspace, identity uuid.UUID) error {
	ended, err := tx.DeletePhonesOfIdentity(
		ctx,
		dbsqlc.DeletePhonesOfIdentityParams{WorkspaceID: workspace, UserIdentityID: identity},
	)
	if err != nil {
		return err
	}
	return s.emitDeactivated(ctx, tx, workspace, ended...)
}

func (s *Service) emitDeactivated(ctx context.Context, tx store.Tx, workspace uuid.UUID, phones ...uuid.UUID) error {
	all := make([]event.Occurrence, len(phones))
	for i := range phones {
		all[i] = event.Occurrence{
			Type:  event.PhoneDeactivated,
			About: event.About{Workspace: workspace, Device: &phones[i]},
		}
	}
	return s.events.EmitAll(ctx, tx, all)
}
