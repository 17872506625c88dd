package account

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// warningsSecret is the name of the stored warnings of an account.
const warningsSecret = "warnings"

// storedWarning is the stored form of a warning.
type storedWarning struct {
	Code    string    `json:"code"`
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// RecordAccountWarnings replaces the warnings that the adapter of an account has found. A warning that stays keeps its
// time. It fails if the fence has lost its lease.
func (s *Service) RecordAccountWarnings(
	ctx context.Context, h store.Fence, account uuid.UUID, found []domain.Problem,
) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		a, err := tx.LockAccount(ctx, account)
		if store.IsNoRows(err) || err == nil && a.DeletedAt != nil { // erased or disconnected meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		was, err := s.storedWarnings(ctx, tx, account)
		if err != nil {
			return err
		}
		now, err := tx.Now(ctx)
		if err != nil {
			return err
		}
		list := mergeWarnings(was, found, now)
		switch {
		case slices.Equal(list, was):
			return nil
		case len(list) == 0:
			return s.putSecret(ctx, tx, account, warningsSecret, nil)
		}
		return s.putSecret(ctx, tx, account, warningsSecret, domain.MustJSON(list))
	})
	if err != nil {
		return fmt.Errorf("record the warnings of account %s: %w", account, err)
	}
	return nil
}

// mergeWarnings returns the stored form of the found warnings. One of a known code keeps its time.
func mergeWarnings(was []storedWarning, found []domain.Problem, now time.Time) []storedWarning {
	var list []storedWarning
	for _, f := range found {
		at := now
		if i := slices.IndexFunc(was, func(w storedWarning) bool { return w.Code == f.Code }); i >= 0 {
			at = was[i].At
		}
		list = append(list, storedWarning{Code: f.Code, Message: f.Message, At: at})
	}
	return list
}

func (s *Service) storedWarnings(ctx context.Context, tx store.Tx, account uuid.UUID) ([]storedWarning, error) {
	r, err := tx.GetAccountSecret(
		ctx,
		dbsqlc.GetAccountSecretParams{ConnectedAccountID: account, Name: warningsSecret},
	)
	if store.IsNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.openWarnings(r)
}

func (s *Service) openWarnings(r dbsqlc.AccountSecret) (list []storedWarning, err error) {
	data, err := s.openSecret(r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read the warnings of account %s: %w", r.ConnectedAccountID, err)
	}
	return list, nil
}

// addWarnings sets the warnings of accounts of a workspace that the caller may see.
func (s *Service) addWarnings(
	ctx context.Context,
	q *dbsqlc.Queries,
	workspace uuid.UUID,
	all []ConnectedAccount,
) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(all))
	for i, a := range all {
		ids[i] = a.ID
	}
	rows, err := q.ListAccountSecrets(
		ctx,
		dbsqlc.ListAccountSecretsParams{WorkspaceID: workspace, ConnectedAccountIds: ids, Name: warningsSecret},
	)
	if err != nil {
		return fmt.Errorf("read the warnings of accounts: %w", err)
	}
	for _, r := range rows {
		list, err := s.openWarnings(r)
		if err != nil {
			return err
		}
		a := &all[slices.Index(ids, r.ConnectedAccountID)]
		for _, w := range list {
			a.Warnings = append(
				a.Warnings,
				domain.Problem{Code: w.Code, Message: w.Message, Scope: domain.OfAccount, At: w.At},
			)
		}
	}
	return nil
}
