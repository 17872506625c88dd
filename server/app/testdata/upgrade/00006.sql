-- The first start of the new version adds the keyed hashes: TestUpgrade_BindsCredentialsOnce.
update credentials set mac = {{mac "credentials.mac/018f0000-0000-7000-8000-000000000002" (printf "api_key|%s|" hexHash)}};
update credential_workspaces set mac = {{mac "credential_workspaces.mac/018f0000-0000-7000-8000-000000000002" "018f0000-0000-7000-8000-000000000001"}};
