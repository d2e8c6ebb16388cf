# Lessons: one entry in lessons/manifest.json makes all targets of a lesson (docs/authoring.md explains how to add one).
#
#   sol_<slug>               its tests on the reference code; each test is a CTest entry "<slug>.<Suite>.<Test>"
#   stub_<slug>              its tests on the generated stub; entry "stub.<slug>": each must fail and name its gap
#   mut_<slug>_<mutant>      the sources of the tests that must catch it, on a wrong answer; entry "mutant.<slug>.<mutant>": the right test must reject it
#   yours_<slug>             its tests on the learner's file (built on demand, not part of CTest: `./lab check`)
#   lesson_<slug>            the lesson program with the reference code; entries "program.<slug>…"
#   lesson_<slug>_yours      the same with the learner's code (on demand)
#   solution_<slug>          include folder of its reference code, for later lessons that build on it
#
# One test source, many include folders: which header a test sees decides whose code it judges. All variants share one
# precompiled header and the same flags, so that a changed exercise is rebuilt and judged in a few seconds.
include(GoogleTest)

set(SHARDLINGS_JUDGE_DEFAULT ON)
if(SHARDLINGS_SANITIZE)
  set(SHARDLINGS_JUDGE_DEFAULT OFF)  # wrong answers need no sanitizer
endif()
option(SHARDLINGS_JUDGE "Build stubs and mutants, and judge them in CTest" ${SHARDLINGS_JUDGE_DEFAULT})
set(SHARDLINGS_TEST_SECONDS 60 CACHE STRING "Time limit of one lesson test")
if(SHARDLINGS_SANITIZE)
  set(SHARDLINGS_TEST_SECONDS 300)
endif()
set(SHARDLINGS_BIN ${CMAKE_BINARY_DIR}/bin)

# A list from a JSON array: shardlings_json_list(out "${json}" path…). An absent array is an empty list.
function(shardlings_json_list out json)
  set(result "")
  string(JSON length ERROR_VARIABLE absent LENGTH "${json}" ${ARGN})
  if(NOT absent AND length GREATER 0)
    math(EXPR last "${length} - 1")
    foreach(i RANGE ${last})
      string(JSON item GET "${json}" ${ARGN} ${i})
      list(APPEND result "${item}")
    endforeach()
  endif()
  set(${out} "${result}" PARENT_SCOPE)
endfunction()

# What all test variants are compiled with; a precompiled header only fits equal flags. -O1: the tests are compiled far
# more often than they run, and what is slow lives in the libraries.
function(shardlings_test_flags target)
  target_compile_options(${target} PRIVATE -O1)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/tests/lessons)
  target_link_libraries(${target} PRIVATE shardlings_run GTest::gtest_main)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${SHARDLINGS_BIN})
endfunction()

# The library that holds the precompiled header and the helpers of tests/lessons/lesson_test.hpp.
function(shardlings_lesson_tests_base)
  add_library(lesson_test STATIC ${PROJECT_SOURCE_DIR}/tests/lessons/lesson_test.cpp)
  shardlings_test_flags(lesson_test)
  target_precompile_headers(lesson_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/lessons/lesson_test.hpp)
endfunction()

# One test program: the lesson's tests against the headers in the given folders, first folder first.
function(shardlings_test_variant target tests)
  add_executable(${target} ${tests})
  shardlings_test_flags(${target})
  target_precompile_headers(${target} REUSE_FROM lesson_test)
  target_include_directories(${target} BEFORE PRIVATE ${ARGN})
  target_link_libraries(${target} PRIVATE lesson_test)
endfunction()

function(shardlings_add_lesson json)
  string(JSON slug GET "${json}" slug)
  string(JSON folder GET "${json}" folder)
  string(JSON expected_tests GET "${json}" tests)
  set(solution ${PROJECT_SOURCE_DIR}/solutions/${folder})
  set(exercise ${PROJECT_SOURCE_DIR}/exercises/${folder})
  set(test_folder ${PROJECT_SOURCE_DIR}/tests/lessons/${folder})
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${solution} ${solution}/*.hpp)
  file(GLOB tests CONFIGURE_DEPENDS ${test_folder}/*_test.cpp)
  set(exercise_files "")
  string(JSON count LENGTH "${json}" exercises)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON file GET "${json}" exercises ${i} file)
    list(APPEND exercise_files ${file})
  endforeach()
  shardlings_json_list(needs "${json}" needs)

  # Reference code for the lessons that build on this one.
  add_library(solution_${slug} INTERFACE)
  target_include_directories(solution_${slug} INTERFACE ${solution})
  target_link_libraries(solution_${slug} INTERFACE shardlings_run)
  set(earlier "")
  foreach(need ${needs})
    target_link_libraries(solution_${slug} INTERFACE solution_${need})
    list(APPEND earlier solution_${need})
  endforeach()

  # The program.
  foreach(who reference yours)
    set(program lesson_${slug})
    set(code ${solution})
    if(who STREQUAL yours)
      set(program lesson_${slug}_yours)
      set(code ${exercise})
    endif()
    add_executable(${program} ${PROJECT_SOURCE_DIR}/lessons/${folder}/main.cpp)
    target_include_directories(${program} PRIVATE ${code})
    target_compile_definitions(${program} PRIVATE SHARDLINGS_IMPL="${who}")
    target_link_libraries(${program} PRIVATE shardlings_run ${earlier})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${SHARDLINGS_BIN})
  endforeach()
  set_target_properties(lesson_${slug}_yours PROPERTIES EXCLUDE_FROM_ALL ON)

  # The reference passes.
  shardlings_test_variant(sol_${slug} "${tests}" ${solution})
  target_link_libraries(sol_${slug} PRIVATE ${earlier})
  gtest_discover_tests(sol_${slug} TEST_PREFIX "${slug}." WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} DISCOVERY_TIMEOUT 60
                       TEST_LIST tests_of_${slug} PROPERTIES TIMEOUT ${SHARDLINGS_TEST_SECONDS})
  shardlings_label_discovered(tests_of_${slug} "solution;${slug}")

  # The learner's file, on demand.
  shardlings_test_variant(yours_${slug} "${tests}" ${exercise})
  target_link_libraries(yours_${slug} PRIVATE ${earlier})
  set_target_properties(yours_${slug} PROPERTIES EXCLUDE_FROM_ALL ON)

  # Authors: write the learner's files anew from the solution. What differed is kept.
  foreach(header ${headers})
    if(header IN_LIST exercise_files)
      list(APPEND refresh COMMAND stubgen refresh ${solution}/${header} ${exercise}/${header}
                                  ${PROJECT_SOURCE_DIR}/.lab/kept/${slug})
    else()
      list(APPEND refresh COMMAND ${CMAKE_COMMAND} -E copy_if_different ${solution}/${header} ${exercise}/${header})
    endif()
  endforeach()
  add_custom_target(refresh_exercise_${slug} ${refresh} VERBATIM)
  add_dependencies(refresh_exercises refresh_exercise_${slug})

  shardlings_program_tests("${json}" ${slug})
  if(SHARDLINGS_JUDGE)
    shardlings_add_stub()
    shardlings_add_mutants()
    add_test(NAME count.${slug} COMMAND judge count $<TARGET_FILE:sol_${slug}> ${expected_tests})
    set_tests_properties(count.${slug} PROPERTIES LABELS "gate;${slug}")
  endif()
endfunction()

# The rest are parts of shardlings_add_lesson and use its variables.

# Labels with a ';' do not survive gtest_discover_tests: CTest reads them from a file of its own, after the discovery.
function(shardlings_label_discovered list labels)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${list}_labels.cmake)
  file(WRITE ${file} "foreach(test IN LISTS ${list})\n  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${labels}\")\n"
                     "endforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()

# The program runs with the flags in the manifest's "smoke", and refuses a wrong flag with one sentence and exit code 2.
function(shardlings_program_tests json slug)
  shardlings_json_list(flags "${json}" smoke)
  add_test(NAME program.${slug}
           COMMAND judge --seconds ${SHARDLINGS_TEST_SECONDS} exit 0 -- $<TARGET_FILE:lesson_${slug}> ${flags}
                   --run-dir ${CMAKE_BINARY_DIR}/smoke/${slug}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME program.${slug}.wrong_flag
           COMMAND judge exit 2 --says "--no-such-flag" -- $<TARGET_FILE:lesson_${slug}> --no-such-flag
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(program.${slug} program.${slug}.wrong_flag PROPERTIES LABELS "program;${slug}")
endfunction()

# The folder is called exercises/… in the build tree too, so that a stub names the learner's path.
macro(shardlings_add_stub)
  set(stubs ${CMAKE_BINARY_DIR}/stubs/exercises/${folder})
  set(generated "")
  foreach(header ${headers})
    if(header IN_LIST exercise_files)
      set(make stubgen stub ${solution}/${header} ${stubs}/${header})
    else()
      set(make ${CMAKE_COMMAND} -E copy_if_different ${solution}/${header} ${stubs}/${header})
    endif()
    add_custom_command(OUTPUT ${stubs}/${header} COMMAND ${make} DEPENDS ${solution}/${header} stubgen VERBATIM
                       COMMENT "Stub of ${slug}: ${header}")
    list(APPEND generated ${stubs}/${header})
  endforeach()
  shardlings_test_variant(stub_${slug} "${tests};${generated}" ${stubs})
  target_link_libraries(stub_${slug} PRIVATE ${earlier})
  add_test(NAME stub.${slug} COMMAND judge stub $<TARGET_FILE:stub_${slug}> --todo "TODO exercises/${folder}/"
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(stub.${slug} PROPERTIES LABELS "stub;${slug}")
endmacro()

# The sources, of `tests`, that hold the tests named (Suite.Test): a mutant is built with those that must catch it, and no others. All
# of them where a name is not found, so that the judge can say so.
function(shardlings_tests_with out names tests)
  set(chosen "")
  foreach(name ${names})
    string(REPLACE "." ", *" pattern "${name}")
    set(found "")
    foreach(test ${tests})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${test})
      file(READ ${test} text)
      if(text MATCHES "TEST[_A-Z]*\\([ \n]*${pattern}\\)")
        list(APPEND found ${test})
      endif()
    endforeach()
    if(NOT found)
      set(chosen ${tests})
    endif()
    list(APPEND chosen ${found})
  endforeach()
  list(REMOVE_DUPLICATES chosen)
  set(${out} "${chosen}" PARENT_SCOPE)
endfunction()

macro(shardlings_add_mutants)
  string(JSON mutants LENGTH "${json}" mutants)
  math(EXPR last_mutant "${mutants} - 1")
  foreach(m RANGE ${last_mutant})
    string(JSON name GET "${json}" mutants ${m} name)
    string(JSON says GET "${json}" mutants ${m} says)
    shardlings_json_list(caught_by "${json}" mutants ${m} caught_by)
    set(mutated ${test_folder}/mutants/${name})
    set(wrong ${CMAKE_BINARY_DIR}/mutants/${folder}/${name})
    set(generated "")
    foreach(header ${headers})
      if(EXISTS ${mutated}/${header})
        add_custom_command(OUTPUT ${wrong}/${header} VERBATIM COMMENT "Mutant ${name} of ${slug}"
                           COMMAND stubgen mutant ${solution}/${header} ${mutated}/${header} ${wrong}/${header}
                           DEPENDS ${solution}/${header} ${mutated}/${header} stubgen)
      else()
        add_custom_command(OUTPUT ${wrong}/${header} VERBATIM COMMENT "Mutant ${name} of ${slug}: unchanged ${header}"
                           COMMAND ${CMAKE_COMMAND} -E copy_if_different ${solution}/${header} ${wrong}/${header}
                           DEPENDS ${solution}/${header})
      endif()
      list(APPEND generated ${wrong}/${header})
    endforeach()
    shardlings_tests_with(catching "${caught_by}" "${tests}")
    shardlings_test_variant(mut_${slug}_${name} "${catching};${generated}" ${wrong})
    target_link_libraries(mut_${slug}_${name} PRIVATE ${earlier})
    add_test(NAME mutant.${slug}.${name}
             COMMAND judge mutant $<TARGET_FILE:mut_${slug}_${name}> --says "${says}" --caught-by ${caught_by}
             WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(mutant.${slug}.${name} PROPERTIES LABELS "mutant;${slug}")
  endforeach()
endmacro()

# All lessons of a manifest, in its order: a lesson can only need earlier ones.
function(shardlings_add_lessons manifest)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${manifest})
  file(READ ${manifest} text)
  string(JSON count ERROR_VARIABLE broken LENGTH "${text}" lessons)
  if(broken)
    message(FATAL_ERROR "${manifest}: ${broken}")
  endif()
  shardlings_lesson_tests_base()
  add_custom_target(refresh_exercises)
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON lesson GET "${text}" lessons ${i})
    shardlings_add_lesson("${lesson}")
  endforeach()
endfunction()
