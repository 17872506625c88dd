package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// AccountFilter are conditions that must all hold. Zero fields are no condition.
type AccountFilter struct {
	// Failing is whether the account has an error.
	Failing     *bool
	Adapter     string
	CustomerKey string
	// Search is a part of the name or of the user identifier.
	Search string
}

// Accounts lists the connected accounts of a workspace.
func (s *Service) Accounts(
	ctx context.Context,
	workspace uuid.UUID,
	f AccountFilter,
	from Position,
	limit int,
) (List, error) {
	at, id := from.before()
	found, err := s.db.UnpreparedQueries.OverviewAccounts(ctx, dbsqlc.OverviewAccountsParams{
		WorkspaceID: workspace,
		BeforeAt:    at,
		BeforeID:    id,
		Failing:     f.Failing,
		Adapter:     nonZero(f.Adapter),
		CustomerKey: nonZero(f.CustomerKey),
		Pattern:     store.SearchPattern(f.Search),
		MaxRows:     int32(limit) + 1,
	})
	if err != nil {
		return List{}, fmt.Errorf("list the accounts: %w", err)
	}
	rows := make([]row, len(found))
	for i, r := range found {
		rows[i] = row{r.ConnectedAccountID, r.CreatedAt}
	}
	return cut(rows, limit), nil
}

// Adapters lists the adapters of the accounts of a workspace, sorted.
func (s *Service) Adapters(ctx context.Context, workspace uuid.UUID) ([]string, error) {
	names, err := s.db.ListAdaptersOfWorkspace(ctx, workspace)
	if err != nil {
		return nil, fmt.Errorf("list the adapters: %w", err)
	}
	return names, nil
}

// MaxCount is the maximum that lists count to for each row.
const MaxCount = 500

// AccountDevices are the devices of an account.
type AccountDevices struct {
	// Count is at most MaxCount + 1.
	Count int
	// ReadAt is when the newest read of a device succeeded, among the counted ones; zero: never.
	ReadAt time.Time
}

// CountDevices counts the devices of accounts.
func (s *Service) CountDevices(
	ctx context.Context,
	workspace uuid.UUID,
	accounts []uuid.UUID,
) (map[uuid.UUID]AccountDevices, error) {
	rows, err := s.db.CountDevicesOfAccounts(ctx, dbsqlc.CountDevicesOfAccountsParams{
		WorkspaceID:         workspace,
		ConnectedAccountIds: accounts,
		MaxRows:             MaxCount + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("count the devices of accounts: %w", err)
	}
	out := map[uuid.UUID]AccountDevices{}
	for _, r := range rows {
		one := AccountDevices{Count: int(r.Devices)}
		if r.ReadAt.Year() > 1 {
			one.ReadAt = r.ReadAt
		}
		out[r.ConnectedAccountID] = one
	}
	return out, nil
}

// CallsLeft returns what is left of the buckets of accounts that have called their vendor.
func (s *Service) CallsLeft(
	ctx context.Context,
	accounts []uuid.UUID,
	b account.Bucket,
) (map[uuid.UUID]account.CallsLeft, error) {
	rows, err := s.db.ListCallsLeftOfAccounts(ctx, dbsqlc.ListCallsLeftOfAccountsParams{
		ConnectedAccountIds: accounts,
		Burst:               b.Burst,
		PerSecond:           b.PerSecond,
	})
	if err != nil {
		return nil, fmt.Errorf("read the calls left of accounts: %w", err)
	}
	out := map[uuid.UUID]account.CallsLeft{}
	for _, r := range rows {
		out[r.ConnectedAccountID] = account.CallsLeft{Calls: r.Remaining, Blocked: domain.Seconds(r.BlockedSeconds)}
	}
	return out, nil
}

// Webview is a connect webview without its token.
type Webview struct {
	ID               uuid.UUID
	Providers        []string // empty: any
	CustomerKey      string
	Status           account.WebviewStatus
	SelectedProvider string
	AccountID        *uuid.UUID
	LoginAttempts    int
	CreatedAt        time.Time
	ExpiresAt        time.Time
	AuthorizedAt     time.Time // zero: not yet
}

// WebviewFilter are conditions that must all hold. Zero fields are no condition.
type WebviewFilter struct {
	Account uuid.UUID
	// State is open, used, or expired.
	State string
}

// Webviews lists the connect webviews of a workspace, and where the next page starts.
func (s *Service) Webviews(
	ctx context.Context,
	workspace uuid.UUID,
	f WebviewFilter,
	from Position,
	limit int,
) (out []Webview, next Position, err error) {
	at, id := from.before()
	rows, err := s.db.UnpreparedQueries.OverviewWebviews(ctx, dbsqlc.OverviewWebviewsParams{
		WorkspaceID:        workspace,
		BeforeAt:           at,
		BeforeID:           id,
		ConnectedAccountID: nonZero(f.Account),
		State:              nonZero(f.State),
		MaxRows:            int32(limit) + 1,
	})
	if err != nil {
		return nil, next, fmt.Errorf("list the webviews: %w", err)
	}
	for i, r := range rows {
		if i == limit {
			next = Position{out[i-1].CreatedAt, out[i-1].ID}
			break
		}
		out = append(out, Webview{
			ID:               r.ConnectWebviewID,
			Providers:        r.AcceptedProviders,
			CustomerKey:      domain.Value(r.CustomerKey),
			Status:           account.WebviewStatus(r.Status),
			SelectedProvider: domain.Value(r.SelectedProvider),
			AccountID:        r.ConnectedAccountID,
			LoginAttempts:    int(r.LoginAttempts),
			CreatedAt:        r.CreatedAt,
			ExpiresAt:        r.ExpiresAt,
			AuthorizedAt:     domain.Value(r.AuthorizedAt),
		})
	}
	return out, next, nil
}
