"""Faults on demand: what a network, a proxy or the service itself may do wrong, provoked on purpose.

A fault is added with POST /_sandbox/faults and lives in the memory of this process until it is deleted, until a
reset, or until the process ends. `operation` is a name of `payments_gateway/operations.py`, or "*" for whatever is
asked under /v2 and /v4. `times` is how many requests it hits (null: until it is taken away), `skip` how many pass
first, and `containing` a text that the target or the body of a request must contain, byte by byte as it was sent.

What each kind looks like to the client, and whether the service executed the operation:

kind              on the wire                                                            executed
delay             the answer comes `seconds` later                                       yes, also if the client left
  when=before_execution    the wait comes first; nothing is in the books meanwhile
  when=after_execution     the books have changed while the client waits
status            any status from 200 with any body and headers                          see `when`
  when=before_execution    the operation is refused                                      no
  when=after_execution     its answer is replaced                                        yes
drop              no answer, or half of one; the connection is gone                      see `when`
  when=before_read         reset (RST) while the body is still unread                    no
  when=after_read          closed (FIN) once the whole request was read                  no
  when=after_execution     closed (FIN) instead of the answer                            yes
  when=mid_answer          head and half of the body, then reset (RST)                   yes
truncate          the body ends after `at` bytes                                         yes
  content_length=full      Content-Length promises the whole body; then closed (FIN)
  content_length=cut       Content-Length fits what was sent: a whole answer, of half a document
garbage           status 200 and nonsense of the given `form`; see garbage.py            yes, or no with
                                                                                         when=before_execution
duplicate_record  the record at `position` of a page of transactions comes twice         it is a read
hide_record_for   the list of transactions lags: a record made since the fault was       it is a read
                  added appears `seconds` (of the service's clock) after it was made;
                  with operation "*" the extra read of one record lags as well
rate_limit        429 with Retry-After beyond `per_second` requests                      no

`reset` of a drop chooses between RST (true) and FIN (false) against the defaults above. The faults `status`, `drop`,
`truncate`, `garbage` and `rate_limit` answer a request alone: if several wait for the same request, the oldest takes
it and the others wait for the next one, so a sequence of answers is a sequence of faults. Delays and faults of lists
add to each other and to them. `hide_record_for` and `rate_limit` are conditions rather than events: their `times`
defaults to null.

A delay holds one of the service's eight threads, so at most six requests are held at once; while they are, further ones
pass, and count as no hit. Deleting its fault lets the held requests go on at once; a reset cuts their connections, and
what was held before its execution is never executed.
"""
