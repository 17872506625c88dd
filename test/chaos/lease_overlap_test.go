package chaos_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/account"
)

// leaseLog makes the database record which server takes, renews, and releases which lease. Servers connect with their
// names.
const leaseLog = `
create table lease_log (n bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
  key text not null, fence bigint not null, held_until timestamptz not null, server text not null);
create function log_lease() returns trigger language plpgsql as $$ begin
  insert into lease_log (key, fence, held_until, server) values (new.key, new.fence, new.held_until, current_setting('application_name'));
  return null;
end $$;
create trigger log_lease after insert or update on leases for each row execute function log_lease()`

// tenures returns the tenures of all leases by key.
func (s *storm) tenures() map[string][]tenure {
	s.Helper()
	rows, err := s.pool.Query(
		s.Context(),
		`select key, fence, server, at, case when held_until = '-infinity' then at else held_until end from lease_log order by n`,
	)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	all := map[string][]tenure{}
	for rows.Next() {
		var key string
		var t tenure
		if err := rows.Scan(&key, &t.fence, &t.server, &t.from, &t.to); err != nil {
			s.Fatal(err)
		}
		if known := all[key]; len(known) > 0 && known[len(known)-1].fence == t.fence &&
			known[len(known)-1].server == t.server {
			known[len(known)-1].to = t.to // renewed or released
		} else {
			all[key] = append(known, t)
		}
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	return all
}

// oneAtATime checks at the cloud and the endpoints that one server at a time worked on each device, account, and
// endpoint, and returns statistics.
func (s *storm) oneAtATime(complain func(string, ...any)) string {
	s.Helper()
	s.witness.mu.Lock()
	seen, strangers := slices.Clone(s.witness.seen), slices.Clone(s.witness.strangers)
	s.witness.mu.Unlock()
	keys := s.leaseKeys(seen)
	h := history{
		tenures: s.tenures(),
		frozen:  s.frozen,
		killed:  s.killed,
	} // read after the requests: servers may continue, and later leases are not missing
	asked, free, unknown := map[string]int{}, map[string]int{}, 0
	for _, r := range seen {
		switch key := keys[r.of]; {
		case r.of == "":
			free[r.what]++
		case r.server == "":
			// On a busy machine, a connection may close before its owner is looked up. The short form skips such connections.
			if unknown++; s.long && !s.hasEnded(r.begin) {
				complain("%s, of an unknown server: %q", r, strangers)
			}
		case key == "":
			complain("%s, which has no lease", r)
		default:
			r.of = key
			lane, _, _ := strings.Cut(key, ":")
			asked[lane]++
			h.requests = append(h.requests, r)
		}
	}
	if 2*unknown > len(seen) {
		complain("of %d requests it is not known which server has sent %d", len(seen), unknown)
	}
	v := h.judge()
	for _, w := range v.wrong {
		complain("%s", w)
	}
	judgeWoken(complain, v.woken, len(s.frozen))
	for _, lane := range []string{"device", "endpoint"} { // an account is read once a minute
		if v.handed[lane] == 0 && (lane != "endpoint" || origins) {
			complain(
				"none of %d requests came from another server than the one before it, at any %s",
				asked[lane],
				lane,
			)
		}
	}
	return fmt.Sprintf(`
requests by servers       %6d  %v, of servers that had just ended: %d
  from another than before%6d  %v
  by one that woke        %6d  and whose lease had run out while it was frozen: %v
  in the air meanwhile    %6d  of servers that were frozen or killed
  that need no lease      %6d  %v
worked on by two at once  %6d`, len(h.requests)+unknown, asked, unknown, total(v.handed), v.handed, total(v.woken), v.woken, v.outlived, total(free), free, len(v.wrong))
}

// hasEnded reports whether a server ended shortly before, so that its connections cannot be identified.
func (s *storm) hasEnded(before time.Time) bool {
	return slices.ContainsFunc(s.instances, func(i *instance) bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return slices.ContainsFunc(
			i.ends,
			func(e absence) bool { return before.After(e.from) && before.Before(e.to.Add(wakes)) },
		)
	})
}

// leaseKeys returns the leases of the objects of requests.
func (s *storm) leaseKeys(seen []request) map[string]string {
	s.Helper()
	keys := maps.Clone(s.webhooks)
	rows, err := s.pool.Query(s.Context(), `select 'lock:' || vendor_ref, 'device:' || device_id from devices union all
		select 'system:' || vendor_ref, 'acs_system:' || acs_system_id from acs_systems`)
	if err != nil {
		s.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var ref, key string
		if err := rows.Scan(&ref, &key); err != nil {
			s.Fatal(err)
		}
		keys[ref] = key
	}
	if rows.Err() != nil {
		s.Fatal(rows.Err())
	}
	accounts := map[string]string{} // one of locks, and one of access systems
	for adapter, what := range map[string]string{
		account.SandboxAdapter:       "GET locks",
		account.SandboxAccessAdapter: "GET systems",
	} {
		var account string
		if err := s.pool.QueryRow(s.Context(), "select coalesce(max('account:' || connected_account_id), '') from "+
			"connected_accounts where adapter = $1", adapter).
			Scan(&account); err != nil {
			s.Fatal(err)
		}
		accounts[what] = account
	}
	for _, r := range seen {
		if strings.HasPrefix(r.of, "account:") {
			keys[r.of] = cmp.Or(keys[r.of], accounts[r.what])
		}
	}
	return keys
}
