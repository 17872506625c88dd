package access

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// gatewayMAC is nil where nothing is known of the gateway: such accounts are not compared.
func (s *Service) gatewayMAC(adapter, gateway string) []byte {
	if gateway == "" {
		return nil
	}
	return s.keys.MAC("connected_accounts.gateway/"+adapter, []byte(gateway))
}

// holdGateway has all others wait who connect the gateway, until the end of the transaction: of two who come at once by two
// addresses the second one finds the first.
func (s *Service) holdGateway(ctx context.Context, tx store.Tx, adapter, gateway string) error {
	if gateway == "" {
		return nil
	}
	return tx.HoldGateway(ctx, s.gatewayMAC(adapter, gateway))
}

// accountOfGateway is another account than that one which reaches the gateway. There may be several, of whoever runs the server.
func (s *Service) accountOfGateway(ctx context.Context, tx store.Tx, adapter, gateway string, but uuid.UUID) (a dbsqlc.ConnectedAccount, found bool, err error) {
	if gateway == "" {
		return a, false, nil
	}
	a, err = tx.GetAccountByGateway(ctx, dbsqlc.GetAccountByGatewayParams{Adapter: adapter, GatewayMac: s.gatewayMAC(adapter, gateway), ConnectedAccountID: but})
	if store.IsNoRows(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

// MeetGateway notes which gateway an account reaches: one of before that was noted, or another that answers at its
// address now. It fails with Conflict for a stranger, which is an account that somebody has entered on a page, where another
// account has the gateway: what was said of it at the login proves nothing, and where the address leads may have changed.
func (s *Service) MeetGateway(ctx context.Context, account uuid.UUID, gateway string, stranger bool) error {
	if gateway == "" {
		return nil
	}
	known, err := s.db.GetAccount(ctx, account)
	if store.IsNoRows(err) || err == nil && known.DeletedAt != nil {
		return nil
	}
	if err == nil && (stranger || !bytes.Equal(known.GatewayMac, s.gatewayMAC(known.Adapter, gateway))) {
		err = s.db.InTx(ctx, func(tx store.Tx) error { return s.meetGateway(ctx, tx, known, gateway, stranger) })
	}
	if err != nil {
		return fmt.Errorf("note which gateway account %s reaches: %w", account, err)
	}
	return nil
}

func (s *Service) meetGateway(ctx context.Context, tx store.Tx, a dbsqlc.ConnectedAccount, gateway string, stranger bool) error {
	if err := s.holdGateway(ctx, tx, a.Adapter, gateway); err != nil {
		return err
	}
	if stranger {
		_, found, err := s.accountOfGateway(ctx, tx, a.Adapter, gateway, a.ConnectedAccountID)
		if err != nil {
			return err
		}
		if found {
			return &Error{Kind: Conflict, Type: "connected_account_exists", Message: "This gateway is connected as another account."}
		}
	}
	return tx.SetAccountGateway(ctx, dbsqlc.SetAccountGatewayParams{ConnectedAccountID: a.ConnectedAccountID, GatewayMac: s.gatewayMAC(a.Adapter, gateway)})
}
