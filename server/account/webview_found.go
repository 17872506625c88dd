package account

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Found is what the server has found in the account of a webview.
type Found struct {
	// Names are the vendor's names of devices or access systems, in the order in which the server found them.
	Names []string
	// Total is the number of devices or access systems.
	Total int
	// Known means that the account was read at least once.
	Known bool
	// Pending means that the account was not read yet.
	Pending bool
}

// FoundOnWebview returns what the server has found in the account of a webview, with up to limit names. It returns
// nothing after the webview's end, because its URL may reach others, and for an account that another customer has now.
func (s *Service) FoundOnWebview(ctx context.Context, w Webview, limit int) (out Found, err error) {
	if w.AccountID == nil || !s.opt.Now().Before(w.ExpiresAt) {
		return Found{}, nil
	}
	a, err := s.db.GetAccount(ctx, *w.AccountID)
	if store.IsNoRows(err) || err == nil && a.DeletedAt != nil {
		return Found{}, nil
	}
	if err != nil {
		return out, fmt.Errorf("read the account of a webview: %w", err)
	}
	rows, err := s.db.NamesOnWebview(ctx, dbsqlc.NamesOnWebviewParams{
		ConnectWebviewID: w.ID,
		MaxRows:          int32(limit), //// a small constant
	})
	if err != nil {
		return out, fmt.Errorf("list what a webview has found: %w", err)
	}
	out.Known, out.Pending = a.FirstSyncedAt != nil, a.FirstSyncedAt == nil
	for _, r := range rows {
		out.Names, out.Total = append(out.Names, r.Name), int(r.Total)
	}
	return out, nil
}

// Kind is what an account is connected to.
type Kind struct {
	Adapter  string
	Provider string // device_provider_name of the API; empty: each device has its own
}

// KindsInUse returns what the accounts of a workspace are connected to.
func (s *Service) KindsInUse(ctx context.Context, workspace uuid.UUID) (map[Kind]bool, error) {
	rows, err := s.db.AccountKindsInUse(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list the kinds of accounts: %w", err)
	}
	out := make(map[Kind]bool, len(rows))
	for _, r := range rows {
		out[Kind{Adapter: r.Adapter, Provider: r.Provider}] = true
	}
	return out, nil
}
