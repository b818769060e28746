"""What `host_facts` reads on a host, one subject a file. Reading only: nothing here changes a host.

Runs on the hosts' own Python (3.9 and newer), so it uses nothing but the standard library.
"""
