package account

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// gatewayMAC returns the MAC of a gateway's identity, or nil for an unknown gateway. Accounts without one are
// not compared.
func (s *Service) gatewayMAC(adapter, gateway string) []byte {
	if gateway == "" {
		return nil
	}
	return s.keys.IndexMAC("connected_accounts.gateway/"+adapter, []byte(gateway))
}

// holdGateway locks the gateway until the end of the transaction. Of two concurrent logins by two addresses the
// second one then finds the first.
func (s *Service) holdGateway(ctx context.Context, tx store.Tx, adapter, gateway string) error {
	if gateway == "" {
		return nil
	}
	return tx.HoldGateway(ctx, s.gatewayMAC(adapter, gateway))
}

// accountOfGateway returns another account than but that reaches the gateway. The operator may have connected
// several.
func (s *Service) accountOfGateway(
	ctx context.Context,
	tx store.Tx,
	adapter, gateway string,
	but uuid.UUID,
) (a dbsqlc.ConnectedAccount, found bool, err error) {
	if gateway == "" {
		return a, false, nil
	}
	a, err = tx.GetAccountByGateway(
		ctx,
		dbsqlc.GetAccountByGatewayParams{
			Adapter:            adapter,
			GatewayMac:         s.gatewayMAC(adapter, gateway),
			ConnectedAccountID: but,
		},
	)
	if store.IsNoRows(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

// RecordGateway records which gateway an account reaches. It fails with Conflict for a stranger, which is an
// account that was entered on a page, where another account has the gateway. What the gateway reported at the
// login proves nothing, and its address may lead elsewhere by now.
func (s *Service) RecordGateway(ctx context.Context, account uuid.UUID, gateway string, stranger bool) error {
	if gateway == "" {
		return nil
	}
	known, err := s.db.GetAccount(ctx, account)
	if store.IsNoRows(err) || err == nil && known.DeletedAt != nil {
		return nil
	}
	if err == nil && (stranger || !bytes.Equal(known.GatewayMac, s.gatewayMAC(known.Adapter, gateway))) {
		err = s.db.InTx(ctx, func(tx store.Tx) error { return s.recordGateway(ctx, tx, known, gateway, stranger) })
	}
	if err != nil {
		return fmt.Errorf("record the gateway of account %s: %w", account, err)
	}
	return nil
}

func (s *Service) recordGateway(
	ctx context.Context,
	tx store.Tx,
	a dbsqlc.ConnectedAccount,
	gateway string,
	stranger bool,
) error {
	if err := s.holdGateway(ctx, tx, a.Adapter, gateway); err != nil {
		return err
	}
	if stranger {
		_, found, err := s.accountOfGateway(ctx, tx, a.Adapter, gateway, a.ConnectedAccountID)
		if err != nil {
			return err
		}
		if found {
			return &domain.Error{
				Kind:    domain.Conflict,
				Type:    "connected_account_exists",
				Message: "This gateway is connected as another account.",
			}
		}
	}
	return tx.SetAccountGateway(
		ctx,
		dbsqlc.SetAccountGatewayParams{
			ConnectedAccountID: a.ConnectedAccountID,
			GatewayMac:         s.gatewayMAC(a.Adapter, gateway),
		},
	)
}
