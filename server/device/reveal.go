package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// ErrPINUnreadable reports that the server does not have a PIN: the vendor hides it, or has not chosen it yet.
var ErrPINUnreadable = errors.New("the server does not have this PIN")

// RevealPIN returns the PIN of a managed code, and writes to the audit log that the caller saw it. The entry is
// committed before RevealPIN returns. It fails with NotFound, and with ErrPINUnreadable.
func (s *Service) RevealPIN(ctx context.Context, p domain.Principal, id string) (pin string, err error) {
	code, err := uuid.Parse(id)
	if err != nil {
		return "", codeNotFound(id)
	}
	err = s.db.InTx(ctx, func(tx store.Tx) error {
		r, err := tx.GetAccessCode(
			ctx,
			dbsqlc.GetAccessCodeParams{WorkspaceID: p.WorkspaceID, AccessCodeID: code, IsManaged: true},
		)
		if store.IsNoRows(err) ||
			err == nil && !p.CanSeeDevice(r.CodeDevice.ConnectedAccountID, r.CodeDevice.DeviceID) {
			return codeNotFound(id)
		}
		if err != nil {
			return err
		}
		if pin, err = s.pinOf(r.AccessCode); err != nil {
			return err
		}
		if pin == "" {
			return ErrPINUnreadable
		}
		return tx.Discloses("access_code_id", code)
	})
	if err != nil {
		return "", domain.Wrap(err, fmt.Sprintf("reveal the PIN of access code %s", code))
	}
	return pin, nil
}
